"""The registries: algorithms, queues, topologies, workloads, stack profiles and papers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from fanin.errors import ScenarioError, suggest

Kind = Literal["cc", "queue", "topology", "workload", "stack", "hosts", "paper"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that can be named.

    Attributes
    ----------
    name : str
        As written in scenarios and options.
    title : str
        One line.
    source : str
        Paper, RFC or program that defines it.
    details : dict
        What else its registry says: ``keys`` (settings with ``name``, ``default``, ``help``) and, for algorithms, ``needs_ecn``,
        ``stands_alone``, ``role`` and ``deploy`` (where it can run on real hosts).
    """

    name: str
    title: str
    source: str = ""
    details: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {"name": self.name, "title": self.title, "source": self.source, **self.details}


PAPERS = (
    Entry(
        "trim",
        "Tuning the Aggressive TCP Behavior for Highly Concurrent HTTP Connections in Intra-datacenter",
        "T. Zhang, J. Wang, J. Huang, J. Chen, Y. Pan, G. Min; manuscript of 2016",
        {"proposes": "TCP-TRIM"},
    ),
    Entry(
        "tcprand",
        "Randomizing TCP payload size for TCP fairness in data center networks",
        "S. Lee, D. Lee, M. Lee, H. Jung, B.-S. Lee; Computer Networks 129, 2017",
        {"proposes": "TCPRand"},
    ),
    Entry(
        "gss",
        "Gentle Slow Start to Alleviate TCP Incast in Data Center Networks",
        "Symmetry 11(2), 138, 2019",
        {"proposes": "GSS"},
    ),
    Entry(
        "dcvegas",
        "A Delay-Based TCP for Data Center Networks",
        "Y.-C. Chan, W.-C. Chang",
        {"proposes": "DCVegas"},
    ),
    Entry(
        "dctcp",
        "Data Center TCP - Reproducing Key Findings",
        "C. Howes, University of Waterloo, CS 656 research paper",
        {"proposes": "none: it repeats DCTCP (SIGCOMM 2010)"},
    ),
)
"""The papers that fanin implements."""


def entries(kind: Kind | str) -> list[Entry]:
    """List a registry.

    Parameters
    ----------
    kind : {"cc", "queue", "topology", "workload", "stack", "hosts", "paper"}
        Which one.

    Returns
    -------
    list of Entry

    Raises
    ------
    fanin.ScenarioError
        When there is no such registry.

    Examples
    --------
    >>> import fanin
    >>> [entry.name for entry in fanin.entries("topology") if entry.name == "star"]
    ['star']
    """
    if kind == "paper":
        return list(PAPERS)
    from fanin import _native

    kinds = ("cc", "queue", "topology", "workload", "stack", "hosts", "paper")
    if kind not in kinds:
        raise ScenarioError(f"no registry is named `{kind}`; {suggest(kind, kinds)}")
    rows = json.loads(_native.registry_json(kind))
    return [Entry(row.pop("name"), row.pop("title"), row.pop("source"), row) for row in rows]


def stand_alone_algorithms() -> list[str]:
    """Names of the algorithms that need no other, in the order of their registry."""
    return [entry.name for entry in entries("cc") if entry.details["stands_alone"]]
