"""fanin on the running Linux: the twins of ``kernel/cc``, loaded by BPF, tried on one destination, and taken back.

``program.py`` talks to the root-side binary, ``routes.py`` gives a destination a congestion control and remembers the undo,
``trial.py`` does both for a while and watches, ``command.py`` is ``fanin linux``.
"""
