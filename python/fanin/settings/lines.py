"""What to type to try a candidate on a host, and to take it back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fanin import _native
from fanin.deployable import Recommendation, load_parameters, recommendation
from fanin.settings.candidates import Candidate
from fanin.settings.declared import KNOBS


def how_to(
    candidate: Candidate, *, aggregator: str, now: str, rack: Mapping[str, Any] | None = None
) -> Recommendation | None:
    """The lines that try a candidate on one host and take it back; None when no host can run it.

    Parameters
    ----------
    candidate : Candidate
        What to try.
    aggregator : str
        Address of the host that the responses go to.
    now : str
        What the hosts run today.
    rack : mapping, optional
        The ``[rack]`` table.

    Examples
    --------
    >>> told = how_to(Candidate("cubic", (("stack.min_rto", "5ms"),)), aggregator="10.0.0.1", now="cubic")
    >>> told.trial[-1].endswith("congctl cubic rto_min 5ms"), told.undo
    (True, ('ip route del 10.0.0.1/32',))
    >>> how_to(Candidate("tcprand+cubic", (("cc.rand_rmin", "200B"),)), aggregator="10.0.0.1", now="cubic").trial
    ('LD_PRELOAD=target/release/libfanin_tcprand.so FANIN_TCPRAND_MIN=200 SERVER_COMMAND',)
    """
    values, network = dict(candidate.settings), rack or {}
    at = {
        place: [k for k in KNOBS if k.place == place and k.key in values] for place in ("route", "load", "environment")
    }
    mark = values.get("rack.receiver_mark", values.get("rack.mark", network.get("receiver_mark", network.get("mark"))))
    found = recommendation(
        candidate.cc,
        aggregator=aggregator,
        now=now,
        mark=str(mark) if mark is not None else None,
        quickack=_native.needs_quickack(candidate.cc),
        route=" ".join(f"{k.option} {values[k.key]}" for k in at["route"]),
        load=[
            *load_parameters(candidate.cc, {key: str(value) for key, value in network.items()}),
            *(f"{k.option}={values[k.key].removesuffix('us')}" for k in at["load"]),
        ],
        environment=[f"{k.option}={values[k.key].removesuffix('B')}" for k in at["environment"]],
    )
    alpha = values.get("rack.shared_alpha")
    if found is None or alpha is None:
        return found
    need = f"The switch's dynamic threshold (alpha) is {alpha}: one port may take {alpha} times the free shared buffer."
    return replace(found, needs=(*found.needs, need))
