"""The closed forms on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import fanin as api
import jsonschema
import pytest

from .conftest import ROOT, Fanin

TYPED = {
    "trim-k": ("--rate", "1Gbps", "--rtt", "224.64us", "--buffer", "150KB"),
    "trim-as": ("--rate", "1Gbps", "--buffer", "100p", "--connections", "40", "--window", "5"),
    "gss-incast": ("--rate", "1Gbps", "--rtt", "100us", "--buffer", "250p"),
    "rand-enqueue": ("--trials", "1000"),
    "rand-rmin": ("--epoch", "70", "--wmax", "100"),
    "dctcp-k": ("--rate", "10Gbps", "--rtt", "100us", "--k", "65p"),
    "iatcp-window": ("--rate", "1Gbps", "--rtt", "224.64us", "--connections", "8"),
}


def test_every_form_is_typed_here() -> None:
    assert set(TYPED) == set(api.models.MODELS)


@pytest.mark.parametrize("name", TYPED)
def test_a_form_prints_one_object_that_its_schema_describes(fanin: Fanin, name: str) -> None:
    done = fanin("model", name, *TYPED[name], "--json")
    assert done.code == 0, done.err
    schema = json.loads((ROOT / "docs/json/model.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(done.json())
    table = fanin("model", name, *TYPED[name])
    for value in done.json()["values"]:
        assert value["name"] in table.out
        assert value["means"][:20] in table.out


def test_numbers_are_the_papers() -> None:
    k = api.models.trim_k("1Gbps", "224.64us", "100p")
    assert k["lower"] == pytest.approx(314.4282380085278e-6)
    assert k["upper"] == pytest.approx(712.32e-6)
    assert api.models.gss_incast("10Gbps", "100us", "250p", flows=78)["slow_start"] == pytest.approx(0.9840951956261029)
    published = {"x2": 0.63, "y2": 0.58, "neither": 0.11}
    found = api.models.rand_enqueue()
    assert {name: found[name] for name in published} == pytest.approx(published, abs=0.04)
    assert api.models.iatcp_window("1Gbps", "224.64us", 64)["window"] == 1
    assert api.models.dctcp_k("100Mbps", "10ms")["k_least"] == pytest.approx(11.9047619)


def test_bytes_and_packets_of_a_buffer_are_the_same_buffer() -> None:
    assert api.models.trim_k("1Gbps", "200us", "150KB").values == api.models.trim_k("1Gbps", "200us", "100p").values


def test_gentle_slow_start_is_the_lower_curve() -> None:
    curve = api.models.gss_incast("1Gbps", "100us", "250p", most=100).curve
    assert [point["flows"] for point in curve] == [float(n) for n in range(1, 101)]
    assert all(point["gentle slow start"] <= point["slow start"] for point in curve)


def test_without_a_name_the_forms_are_listed(fanin: Fanin) -> None:
    done = fanin("model")
    assert done.code == 0
    assert [name for name in TYPED if name not in done.out] == []
    assert [row["name"] for row in fanin("model", "--json").json()["models"]] == list(api.models.MODELS)


def test_a_curve_is_drawn(fanin: Fanin, tmp_path: Path) -> None:
    done = fanin("model", "gss-incast", *TYPED["gss-incast"], "--out", "both.svg")
    assert done.code == 0, done.err
    picture = (tmp_path / "both.svg").read_text()
    assert picture.startswith("<svg")
    assert "gentle slow start" in picture


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trim-k", "--rate", "1Gbp", "--rtt", "1us", "--buffer", "1p"), "`Gbp` is not a unit of a rate"),
        (("trim-k", "--rate", "0bps", "--rtt", "1us", "--buffer", "1p"), "it must be greater than zero"),
        (("trim-k", "--rate", "1Gbps"), "missing option '--rtt'"),
        (("trim-k", "--rate", "1Gbps", "--rtt", "1us", "--buffer", "1p", "--out", "k.svg"), "has no curve to draw"),
        (
            ("gss-incast", "--rate", "1Gbps", "--rtt", "1us", "--buffer", "1p", "--out", "k.bmp"),
            "the name must end in .svg",
        ),
        (("rand-rmin", "--epoch", "100", "--wmax", "70"), "1 <= epoch < wmax must hold"),
        (("rand-enqueue", "--rmin", "2000"), "1 <= rmin <= mss <= 65495 must hold"),
        (
            ("iatcp-window", "--rate", "1Gbps", "--rtt", "1us", "--connections", "0"),
            "it must be from 1 to 1,000,000,000",
        ),
        (("trim-k", "--link", "1GBps", "--rtt", "1us", "--buffer", "1p"), "`GBps` reads as bytes per second"),
        (("trim-k", "--link", "10", "--rtt", "1us", "--buffer", "1p"), "command line `--link 10`: `10` has no unit"),
        (
            ("trim-k", "--link", "1Gbps", "--rtt", "1us", "--buffer", "0p"),
            "`--buffer 0p`: it must be greater than zero",
        ),
        (("trim-k", "--link", "1Gbps", "--rtt", "1us", "--buffer", "64kb"), "`kb` reads as bits"),
        (("dctcp-k", "--link", "1Gbps", "--rtt", "1us", "--k", "0p"), "`--k 0p`: it must be greater than zero"),
        (
            ("gss-incast", "--link", "1Gbps", "--rtt", "1us", "--buffer", "1p", "--most", "2e9"),
            "`--most 2e+09`: it must be from 1 to 100,000",
        ),
        (("rand-enqueue", "--seed", "-1"), "`--seed -1`: it must be a whole number from 0 to 2^63 - 1"),
        (("rand-rmin", "--epoch", "70", "--wmax", "100", "--mss", "0"), "`--mss 0`: it must be from 1 to 65495"),
        (("rand-rmin", "--epoch", "70", "--wmax", "100", "--theta", "nan"), "each must be a number"),
        (("nothing",), "no such command 'nothing'"),
    ],
)
def test_bad_input_is_one_sentence(fanin: Fanin, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    done = fanin("model", *arguments)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done.err
    assert said in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_buffer_below_the_path_is_said_to_be_a_trap() -> None:
    notes = api.models.trim_k("10Gbps", "300us", "100p").notes
    assert any("smaller than C*D = 250 packets" in note and "sink to 2" in note for note in notes)
    assert api.models.trim_k("10Gbps", "100us", "250p").notes == []


def test_no_queue_is_below_nothing() -> None:
    # C*D is 8.33 packets: equation 25 gives K = 56 us, 44 us below the round trip, and equation 4 then -3.67 packets.
    tiny = api.models.trim_k("1Gbps", "100us", "1p")
    assert (tiny["upper"], tiny["queue_at_upper"]) == (pytest.approx(56e-6), 0.0)
    # 83 packets and K = 1 below C*D/7 = 11.9: three flows would swing by 11.75 packets, where the queue has 4.
    low = api.models.dctcp_k("1Gbps", "1ms", flows=3, k="1p")
    assert (low["queue_max"], low["queue_amplitude"]) == (4.0, 4.0)
    assert [note for note in low.notes if "windows swing by 11.75 packets, and the greatest queue is 4" in note]
    busy = api.models.dctcp_k("10Gbps", "100us", k="65p")
    assert busy["queue_amplitude"] < busy["queue_max"]
    assert busy.notes == []
