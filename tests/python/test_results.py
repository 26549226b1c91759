"""The data in results/, their descriptions, and the manual's tables of them."""

from __future__ import annotations

import csv
from pathlib import Path

import fanin
import pytest
from fanin.errors import OutputError

from lab import parameters, tables, thresholds

FILES = sorted(tables.RESULTS.glob("*.csv"))


def test_every_data_file_is_described_and_there() -> None:
    assert {file.stem for file in FILES} == set(tables.index())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_column_is_described_and_every_row_is_whole(file: Path) -> None:
    with file.open(encoding="utf-8", newline="") as text:
        head, *rows = csv.reader(text)
    about = tables.index()[file.stem]
    assert head == list(about["columns"])
    assert rows
    assert {len(row) for row in rows} == {len(head)}
    assert (tables.ROOT / "docs" / about["page"]).exists()
    assert {"about", "command", "recorded", "commit", "machine"} <= set(about)


@pytest.mark.parametrize("page", tables.pages(), ids=lambda page: page.stem)
def test_a_page_has_the_tables_that_the_data_give(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert tables.filled(text, page.name) == text, "out of date: `make results` writes it anew"


def test_the_built_manual_has_each_threshold_with_its_reason() -> None:
    page = tables.ROOT / "docs/reference/thresholds.md"
    built = tables.filled(page.read_text(encoding="utf-8"), page.name, built=True)
    rows = {line.split("|")[1].strip(" `"): line for line in built.splitlines() if line.startswith("| `")}
    assert {each.name for each in thresholds.declared()} == set(rows)
    assert all(line.split("|")[3].strip() for line in rows.values()), "a constant without a reason"


def test_every_parameter_of_an_algorithm_is_in_the_table_of_its_page() -> None:
    listed = {key["name"] for entry in fanin.entries("cc") for key in entry.details["keys"]}
    declared = parameters.declared()
    assert {name for names in declared.values() for name in names} == listed
    for algorithm in declared:
        page = tables.ROOT / f"docs/algorithms/{algorithm}.md"
        assert f"<!-- table: parameters {algorithm} -->" in page.read_text(encoding="utf-8"), page.name


def test_a_default_of_a_profile_stands_beside_the_common_one() -> None:
    defaults = {name: default for name, default, *_ in parameters.rows("bbr")}
    assert defaults["`bbr_send_quantum`"] == "1 packet; under `linux` 0"
    assert defaults["`bbr_extra_acked`"] == "off; under `linux` on"


def test_a_table_that_there_is_not_is_named() -> None:
    page = "<!-- table: kernel -->\nold\n<!-- end of table -->\n"
    assert "| all | 349 | 347 | 1.00 |" in tables.filled(page, "page.md")
    with pytest.raises(OutputError, match=r"page.md: there is no table `kernels`"):
        tables.filled(page.replace("kernel", "kernels"), "page.md")


def test_every_threshold_was_moved_from_the_value_that_it_has() -> None:
    moved = {f"{row['file']}:{row['name']}": row["value"] for row in thresholds.data()}
    declared = {each.key: each.value for each in thresholds.declared()}
    assert moved == declared, "make thresholds ONLY=NAME moves those that are new or have another value"


def test_no_threshold_can_be_halved_or_doubled_and_no_test_breaks() -> None:
    free = [
        f"{row['file']}:{row['name']} {side}"
        for row in thresholds.data()
        for side in ("halved", "doubled")
        if row[side].startswith(thresholds.NOTHING)
    ]
    assert free == [], "a test has an input just inside and just outside of each"
