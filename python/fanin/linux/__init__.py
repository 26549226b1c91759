"""fanin on the running Linux: the twins of ``kernel/cc``, loaded by BPF, tried on one destination, and taken back.

``program.py`` talks to ``fanin-host``, which does it and takes it back; ``command.py`` is ``fanin linux``.
"""
