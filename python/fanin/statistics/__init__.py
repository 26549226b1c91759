"""From frames of runs to statistics over seeds, and to an order of candidates."""
