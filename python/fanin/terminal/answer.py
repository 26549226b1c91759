"""What ``--json`` prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any


def print_json(thing: Mapping[str, Any]) -> None:
    """One object on a line, written at once: in containers ``PYTHONUNBUFFERED`` makes a system call of each small write.

    >>> print_json({"version": "0.2.0"})
    {"version": "0.2.0"}
    """
    sys.stdout.write(json.dumps(thing, allow_nan=False) + "\n")
