"""A new user who follows the tutorial gets exactly what it shows.

A block of ``console`` has commands behind ``$`` and what they print; ``...`` stands for lines that are left out. ``FANIN_BLESS=1`` writes
what is printed now into the page, for blocks that leave nothing out.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .conftest import ROOT

PAGE = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
WIDTH = 100


def place(folder: Path) -> dict[str, str]:
    """The root of the tree as a reader has it, to write into; and the environment."""
    for name in ("data", "docs", "examples", "papers"):
        (folder / name).symlink_to(ROOT / name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "PYTHONPATH": "", "TERM": "dumb"}


def kernel_is_built() -> bool:
    from fanin.errors import FaninError
    from fanin.kernel import cache

    try:
        cache.find()
    except FaninError:
        return False
    return True


def steps() -> list[tuple[str, str]]:
    """Commands with what they print, in order."""
    found = []
    for block in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        assert parts[0] == "", "a block begins with a command"
        found += list(zip(parts[1::2], parts[2::2], strict=True))
    return found


def test_the_commands_of_the_tutorial_print_what_it_shows(tmp_path: Path) -> None:
    told = steps()
    assert len(told) >= 10
    environment = place(tmp_path)
    same = doctest.OutputChecker()
    text = PAGE.read_text(encoding="utf-8")
    for command, expected in told:
        if re.search("--(engine|confirm) kernel", command) and not kernel_is_built():
            continue
        if "half.c" in command and shutil.which("cc") is None:
            continue
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed = "".join(line.rstrip() + "\n" for line in (done.stdout + done.stderr).splitlines())
        if os.environ.get("FANIN_BLESS"):
            print(command, flush=True)
            text = text.replace(f"$ {command}\n{expected}", f"$ {command}\n{printed}", 1)
            continue
        wanted = expected if expected.strip() != "..." else "...\n"
        assert same.check_output(wanted, printed, doctest.ELLIPSIS), (
            f"{command}\nshown:\n{expected}\nprinted:\n{printed}"
        )
    if os.environ.get("FANIN_BLESS"):
        PAGE.write_text(text, encoding="utf-8")


def test_the_code_of_the_tutorial_is_the_file_that_is_tried() -> None:
    code = (ROOT / "docs" / "tutorial" / "half.py").read_text(encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    assert f"\n{code}```\n" in page
    for ending in ("c", "rs"):
        assert f"(tutorial/half.{ending})" in page
