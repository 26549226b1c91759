"""`python -m lab racks`: services on many racks, predicted from captures of them and run on the virtual kernel."""
