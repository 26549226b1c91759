"""The rack that a capture of real hosts speaks for, on racks of network namespaces: the truth is in what is told."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from . import real_racks

TRIES, PAUSE_S = 4, 15

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
    # On a machine that others share the hosts of one capture may stall for all of its time: base and change alike then fail four times of four, and
    # hold four of four a minute later.
    tries = []
    for number in range(TRIES):
        folder = tmp_path / str(number)
        folder.mkdir()
        told = {tap: real_racks.told(rack, file) for tap, file in real_racks.captured(rack, folder).items()}
        if all(found.fit and found.rate_within and found.buffer_within for found in told.values()):
            return
        tries.append(told)
        time.sleep(PAUSE_S)
    pytest.fail(f"in none of {TRIES} captures: {tries}")
