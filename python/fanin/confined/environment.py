"""What a worker sees of the user's environment."""

from __future__ import annotations

import os
import re

COMPILERS = (
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
)
"""Environment variables with places that a compiler reads."""

NEEDED = re.compile(
    r"PATH|HOME|TMPDIR|TZ|LANG|LANGUAGE|CC|XDG_CACHE_HOME|MALLOC_ARENA_MAX|_RJEM_MALLOC_CONF|PYTHON[A-Z0-9]*|(LC|LD|FANIN|POLARS|RAYON|RUST)_\w*|"
    + "|".join(COMPILERS)
)
"""Names of the environment variables that a worker gets: Python's, the libraries', the compiler's and fanin's. Others may be secrets of the user."""


def environment() -> dict[str, str]:
    """Variables that it needs, of this process."""
    return {name: value for name, value in os.environ.items() if NEEDED.fullmatch(name)}
