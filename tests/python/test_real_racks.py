"""The rack that a capture of real hosts speaks for, on racks of network namespaces: the truth is in what is told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from . import real_racks

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("tc") is None,
    reason="needs root and tc, to make network namespaces with token buckets",
)


@pytest.mark.parametrize(
    "rack",
    [
        real_racks.Rack(8, 100, 30, "pfifo", shaped=True, offload=True, size=32_768, cc="cubic"),
        real_racks.Rack(6, 200, 40, "bfifo", shaped=False, offload=False, size=65_536, cc="reno"),
    ],
    ids=["shaped", "bare"],
)
def test_a_real_rack_lies_within_what_its_captures_tell(rack: real_racks.Rack, tmp_path: Path) -> None:
    for tap, capture in real_racks.captured(rack, tmp_path).items():
        found = real_racks.told(rack, capture)
        assert found.fit, tap
        assert found.rate_within, (tap, found.rate)
        assert found.buffer_within, (tap, found.buffer)
