"""The root-side binary ``fanin-linux``: one command, one JSON object."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from fanin.errors import EngineError


def find() -> str:
    """Where the binary is.

    Returns
    -------
    str
        ``FANIN_LINUX``, the one that ``make linux`` built in this tree, or one in PATH.

    Raises
    ------
    fanin.errors.EngineError
        If there is none.
    """
    named = os.environ.get("FANIN_LINUX")
    built = Path(__file__).parents[3] / "target" / "release" / "fanin-linux"
    found = named or (str(built) if built.exists() else shutil.which("fanin-linux"))
    if not found:
        raise EngineError(
            "fanin-linux is not built: apt install clang libbpf-dev libelf-dev zlib1g-dev pkg-config, then `make linux`"
        )
    return found


def call(*words: str) -> dict[str, Any]:
    """Run one command of the binary.

    Parameters
    ----------
    *words : str
        As on its command line, such as ``"load", "trim"``.

    Returns
    -------
    dict
        Its answer.

    Raises
    ------
    fanin.errors.EngineError
        With the sentence that it printed.
    """
    done = subprocess.run([find(), *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise EngineError(done.stderr.strip() or f"fanin-linux {' '.join(words)} failed and said nothing")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer
