"""A run on several threads: the same tables, and a sentence where one thread must do."""

from __future__ import annotations

import fanin
import polars.testing

OPEN = """
[topology]
kind = "leaf_spine"
leaves = 3
spines = 2
hosts_per_leaf = 2
buffer = "20p"
[[workload]]
kind = "long"
pattern = "permutation"
bytes = "300KB"
[measure]
queues = ["*"]
windows = ["*"]
"""

CLOSED = """
[topology]
senders = 3
[[workload]]
kind = "incast"
bytes = "20KB"
"""


def test_any_number_of_threads_gives_the_same_tables() -> None:
    one = fanin.run("open.toml", text=OPEN, cc="cubic")
    three = fanin.run("open.toml", text=OPEN, cc="cubic", threads=3)
    for name in ("runs", "messages", "flows", "ports", "window", "queue"):
        polars.testing.assert_frame_equal(getattr(one, name), getattr(three, name))
    assert one.warnings == three.warnings


def test_a_closed_loop_says_why_it_runs_on_one_thread() -> None:
    result = fanin.run("closed.toml", text=CLOSED, threads=4)
    told = [str(warning) for warning in result.warnings if warning.kind == "serial"]
    assert told == ["it runs on one thread, not 4: messages wait for others (a closed loop)"]
