"""`--json` prints exactly one object that its schema in docs/json describes."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from fanin import trains

from .conftest import CAPTURES, HTTP, INCAST, RACK, ROOT, SMALL, Fanin

CASES = {
    "compare": ("compare", SMALL, "--rack", RACK, "--cc", "newreno,dctcp", "--seeds", "2"),
    "rack": ("rack", HTTP),
    "diff": ("diff", SMALL, SMALL),
    "trains": ("trains", SMALL),
    "run": ("run", "incast.toml", "--cc", "newreno,dctcp", "--seeds", "2"),
    **{f"list {kind}": ("list", kind) for kind in ("cc", "queue", "topology", "workload", "stack", "hosts", "paper")},
}


def schema(name: str) -> Any:
    return json.loads((ROOT / f"docs/json/{name}.schema.json").read_text())


@pytest.mark.parametrize("name", CASES)
def test_json_is_one_object_as_its_schema_says(fanin: Fanin, tmp_path: Path, name: str) -> None:
    (tmp_path / "incast.toml").write_text(INCAST)
    outcome = fanin(*CASES[name], "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.out.count("\n") == 1
    found = outcome.json()
    validator = jsonschema.Draft202012Validator(schema(name.split()[0]))
    validator.check_schema(validator.schema)
    assert [f"{list(e.absolute_path)}: {e.message}" for e in validator.iter_errors(found)] == []
    assert found["command"].startswith("fanin ")


@pytest.mark.parametrize("name", ["compare", "trains", "run", "list"])
def test_a_schema_refuses_an_object_that_lacks_a_field(name: str) -> None:
    validator = jsonschema.Draft202012Validator(schema(name))
    assert not validator.is_valid({"version": "0.1.0", "command": f"fanin {name}"})


def test_every_field_is_described() -> None:
    def fields(part: Any, path: str) -> list[str]:
        if not isinstance(part, dict):
            return []
        missing = [
            f"{path}.{name}" for name, field in part.get("properties", {}).items() if not field.get("description")
        ]
        return missing + [m for key, inner in part.items() for m in fields(inner, f"{path}.{key}")]

    for name in ("compare", "trains", "rack", "diff", "run", "list"):
        assert fields(schema(name), name) == []


def rows() -> list[dict[str, str]]:
    with (CAPTURES / "index.csv").open(newline="") as file:
        # What a damaged file counts as is judged in crates/capture.
        whole = [r for r in csv.DictReader(file) if not r["file"].startswith("bad/")]
    return [r for r in whole if int(r["tcp_connections"] or 0) > 0]


@pytest.mark.parametrize("row", rows(), ids=lambda r: str(r["file"]))
def test_trains_counts_what_tshark_counts(row: dict[str, str]) -> None:
    capture = CAPTURES / row["file"]
    if not capture.exists() or "vxlan" in row["file"]:
        pytest.skip("not among the shipped captures, or counted inside a tunnel")
    # What the command prints, without a process for each capture.
    found = trains(capture).to_dict()
    assert len(found["connections"]) == int(row["tcp_connections"])
    assert found["capture"]["packets"] == int(row["packets"])
    assert found["capture"]["payload_bytes"] == int(row["tcp_payload_bytes"])


def test_trains_shows_what_was_sent_again_behind_the_queue_too(fanin: Fanin) -> None:
    """The client's own capture: first copies of what was lost never passed there."""
    capture = CAPTURES / "http_onoff_8to1_client.pcap.gz"
    shown = [row.split("│")[-3] for row in fanin("trains", capture).out.splitlines() if "10.77.0.1:" in row]
    from_servers = [c["to_client"] for c in trains(capture).to_dict()["connections"]]
    again = [side["retransmitted_packets"] + side["refilled_packets"] for side in from_servers]
    assert sorted(int(cell) for cell in shown) == sorted(again)
    assert sum(side["retransmitted_packets"] for side in from_servers) == 0 < sum(again)


def test_trains_says_in_its_object_what_speaks_against_its_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "fanin.capture.closing.doubts", lambda replay: {"requests-unsure": f"{len(replay.trees())} of them"}
    )
    found = trains(CAPTURES.parent / "requests" / "two.pcap.gz")
    assert {"kind": "requests-unsure", "message": "0 of them"} in found.to_dict()["warnings"]


def test_trains_numbers_agree_with_each_other(fanin: Fanin) -> None:
    found = fanin("trains", HTTP, "--gap", "1ms", "--json").json()
    for direction in ("to_server", "to_client"):
        mine = [t for t in found["trains"] if t["direction"] == direction]
        assert sum(t["bytes"] for t in mine) == sum(c[direction]["unique_bytes"] for c in found["connections"])
        assert sum(t["retransmitted_bytes"] for t in mine) == sum(
            c[direction]["retransmitted_bytes"] for c in found["connections"]
        )
        assert found["distributions"][direction]["trains"] == len(mine)
        assert all(t["gap_before_ms"] is None or t["gap_before_ms"] > 1 for t in mine)
