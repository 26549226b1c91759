"""The laboratory: measures fanin against other programs, and writes the manual's tables. Of the repository, not of the package that users install.

================ ==========================================================================================
module           what is in it
================ ==========================================================================================
``validation``   the simulator's profile `linux` beside Linux's TCP in virtual time (``python -m lab validate``)
``racks``        predictions from captures beside what the kernel does (``python -m lab racks``)
``beside``       the testbed beside the virtual kernel, and every algorithm on it (``python -m lab beside``, ``twins``)
``tables``       the manual's tables, from the data in ``results/`` (``python -m lab tables``)
``ns2``, ``ns3`` the same scenarios in two other simulators
================ ==========================================================================================
"""
