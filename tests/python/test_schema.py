"""What is made from the engine's tables is up to date, and the schemas for editors say what the reader says.

``FANIN_BLESS=1 pytest tests/python/test_schema.py`` makes the files anew.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import fanin
import jsonschema
import polars as pl
import pytest
from fanin import _native
from fanin.statistics.schema import Column, Table, schema

from .conftest import INCAST, ROOT

HEAD = """# Results

<!-- Made by `FANIN_BLESS=1 pytest tests/python/test_schema.py` from crates/sim/src/results.rs, where a column is one line. -->

Tables of `fanin.run` (attributes of its result), of `fanin run --out` (Parquet files) and, in part, of `fanin run --json`. Each begins with
`cc` (algorithm) and `seed`. Times are milliseconds from the start of the run. A column marked `?` may be null.

"""


def checked(path: str, made: str) -> None:
    """The file holds what was made; with ``FANIN_BLESS`` it is written first."""
    file = ROOT / path
    if os.environ.get("FANIN_BLESS"):
        file.write_text(made, encoding="utf-8")
    there = file.read_text(encoding="utf-8") if file.exists() else ""
    assert there == made, f"{path}: run `FANIN_BLESS=1 pytest tests/python/test_schema.py` and commit what it wrote"


def page() -> str:
    def line(column: Column) -> str:
        codes = f" One of {', '.join(column.codes)}." if isinstance(column.codes, list) else ""
        kind = column.type + "?" * column.nullable
        return f"| `{column.name}` | {kind} | {column.unit} | {column.doc}{codes} |"

    parts = []
    for table in schema():
        head = f"## `{table.name}`\n\n{table.doc}\n\n| column | type | unit | |\n|---|---|---|---|"
        parts.append("\n".join([head, *map(line, table.columns)]))
    return HEAD + "\n\n".join(parts) + "\n"


def rows_of(table: Table) -> dict[str, Any]:
    """The part of a JSON Schema that describes one row."""

    def of(column: Column) -> dict[str, Any]:
        kind = {"String": "string", "Float64": "number"}.get(column.type, "integer")
        unit = f" Unit: {column.unit}." if column.unit else ""
        told: dict[str, Any] = {
            "type": [kind, "null"] if column.nullable else kind,
            "description": column.doc + unit,
        }
        return told | ({"minimum": 0} if kind == "integer" else {})

    return {
        "type": "object",
        "description": table.doc,
        "properties": {column.name: of(column) for column in table.columns},
        "required": [column.name for column in table.columns],
        "additionalProperties": False,
    }


def test_the_page_of_results_is_up_to_date() -> None:
    checked("docs/reference/results.md", page())


def test_the_json_schema_of_run_is_up_to_date() -> None:
    path = "docs/json/run.schema.json"
    document = json.loads((ROOT / path).read_text())
    properties = document["properties"]["runs"]["items"]["properties"]
    for table in schema():
        if table.name in properties and table.name != "messages":
            properties[table.name]["items"] = rows_of(table)
    checked(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def test_the_stub_lists_the_tables() -> None:
    path = "python/fanin/_native.pyi"
    text = (ROOT / path).read_text()
    *names, last = (table.name for table in schema())
    told = rf'\g<1>"""{", ".join(names)} or {last}."""'
    made, count = re.subn(r'(def table\(\s*self, name: str[^)]*\) -> Table:\n\s+)"""[^"]*"""', told, text)
    assert count == 1
    checked(path, made)


def test_frames_have_the_columns_of_the_schema_and_no_others(tmp_path: Path) -> None:
    file = tmp_path / "incast.toml"
    file.write_text(INCAST + '[measure]\nqueues = "*"\nwindows = ["*"]\npackets = "*"\nthroughput = "1ms"\n')
    result = fanin.run(file, cc="dctcp")
    for table in schema():
        frame = getattr(result, table.name)
        assert frame.columns == ["cc", "seed", *(column.name for column in table.columns)], table.name
        for column in table.columns:
            assert frame[column.name].dtype == getattr(pl, column.type), (table.name, column.name)
            assert column.nullable or frame[column.name].null_count() == 0, (table.name, column.name)
    assert result.queue.height
    assert result.window.height
    assert result.packets.height


MISTAKES = [
    "[topology]\nsender = 4",
    '[topology]\nkind = "ring"',
    '[topology]\nkind = "dumbbell"\nsenders = 4',
    "[topology]\nbuffer = 100",
    '[topology]\nrouting = "ecmp"',
    "[topology]\nsenders = 0",
    '[topology]\ndelay = "-5us"',
    '[stack]\nminrto = "1ms"',
    "[stack]\nmss = 0",
    "[cc]\ng = 0.1",
    '[cc]\nname = "newreno"\nno_such_parameter = 1',
    "[run]\nseeds = []",
    "[measure]\ndrops = 1",
]


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(json.loads((ROOT / f"schema/{name}.schema.json").read_text()))


def test_every_example_fits_the_schema_that_editors_use() -> None:
    for path in sorted((ROOT / "examples").glob("*.toml")):
        document = tomllib.loads(path.read_text())
        found = validator("rack" if "rack" in document else "scenario").iter_errors(document)
        assert [f"{path.name}: {error.json_path}: {error.message}" for error in found] == []


def read(text: str) -> None:
    scenario = _native.Scenario.from_text(text, "x")
    scenario.plan(1)
    scenario.seeds()


@pytest.mark.parametrize("mistake", MISTAKES)
def test_schema_and_reader_agree_about_mistakes(mistake: str) -> None:
    incast = '[[workload]]\nkind = "incast"\nbytes = "64KB"\n'
    assert validator("scenario").is_valid(tomllib.loads(incast))
    text = f"{mistake}\n{incast}"
    assert not validator("scenario").is_valid(tomllib.loads(text))
    with pytest.raises(fanin.ScenarioError):
        read(text)


@pytest.mark.parametrize("mistake", ["", '[rack]\nrate = "1Gbps"', '[rack]\nrate = 1\ndelay = "1us"\nbuffer = "9p"'])
def test_schema_and_reader_agree_about_mistakes_in_a_rack(mistake: str) -> None:
    assert not validator("rack").is_valid(tomllib.loads(mistake))
    with pytest.raises(fanin.ScenarioError):
        _native.Rack.from_text(mistake, "x").marks()
