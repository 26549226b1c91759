"""The parameters of each algorithm for its page of the manual: as the registry lists them, and what only their declarations in ``crates/cc`` have."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import fanin

SOURCES = Path(__file__).parents[1] / "crates/cc/src/algorithms"
DECLARED = re.compile(r'Setting::(?:choice|parameter|switch)\(\s*"(?P<name>\w+)"(?P<rest>.*?);\n', re.DOTALL)
WORDS = re.compile(r"&\[([^\]]*)\]")
UNDER = re.compile(r'\.(?P<profile>ns2|linux)(?:_word)?\("?(?P<value>[\w./]+)"?\)')
FLAGS = {"false": "off", "true": "on", "0.0": "off", "1.0": "on"}
COLUMNS = ["parameter", "default", "meaning", "source"]


@cache
def declared() -> dict[str, dict[str, str]]:
    """By file of an algorithm, in order: the declaration of each parameter, by name."""
    return {
        file.stem: found
        for file in sorted(SOURCES.glob("*.rs"))
        if (found := {each["name"]: each["rest"] for each in DECLARED.finditer(file.read_text(encoding="utf-8"))})
    }


def rows(algorithm: str) -> list[list[str]]:
    """The cells of an algorithm's table, a row for each parameter.

    Examples
    --------
    >>> rows("dctcp")[1][:2]
    ['`dctcp_alpha0`', '1; under `ns2` 0']
    >>> rows("vegas")[0][1]
    '`ns2` (or `linux`); under `linux` `linux`'
    """
    listed = {key["name"]: key for entry in fanin.entries("cc") for key in entry.details["keys"]}
    cells = []
    for name, declaration in declared()[algorithm].items():
        key = listed[name]
        cells.append([f"`{name}`", _default(key["default"], declaration), key["help"], key["source"]])
    return cells


def _default(default: str, declaration: str) -> str:
    """A default, the other words of a choice, and the default under profiles that have another."""
    words = [word.strip(' "\n') for word in WORDS.findall(declaration)[0].split(",")] if "&[" in declaration else []
    is_flag = default in ("false", "true")
    others = ", ".join(f"`{word}`" for word in words if word and word != default)
    text = f"`{default}` (or {others})" if words else FLAGS.get(default, re.sub(r"^(1 .*)s$", r"\1", default))
    for each in UNDER.finditer(declaration):
        value = each["value"]
        shown = f"`{value}`" if words else FLAGS[value] if is_flag else f"{float(value):g}"
        text += f"; under `{each['profile']}` {shown}"
    return text
