"""A laboratory of services: real servers and aggregators in network namespaces, and what fanin reads of them beside the application's own log.

``.venv/bin/python -m tests.services`` makes every service anew, captures it at three taps, and prints a line for each capture. Needs root.
"""
