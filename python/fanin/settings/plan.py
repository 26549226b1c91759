"""The plan of a change, as ``fanin-host apply`` reads it on each host (crates/host): the same options as in the printed lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fanin.words.text import toml_string

FORMAT = 1
"""Of the file; ``fanin-host`` refuses another."""


@dataclass(frozen=True, slots=True)
class Twin:
    """One of fanin's congestion controls that a host loads before a route names it.

    Attributes
    ----------
    name : str
        As ``fanin-host load`` takes it.
    kernel_name : str
        As a route's ``congctl`` does.
    params : mapping
        Its parameters.
    """

    name: str
    kernel_name: str
    params: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """What each end is given.

    Attributes
    ----------
    aggregator : str
        Its address.
    servers : tuple of str
        Theirs.
    at_servers, at_aggregator : mapping
        Options of the routes to the other end, as ``ip route`` takes them.
    twin : Twin, optional
        What a host loads whose routes name it.
    """

    aggregator: str
    servers: tuple[str, ...]
    at_servers: Mapping[str, str]
    at_aggregator: Mapping[str, str]
    twin: Twin | None = None

    def toml(self, title: str) -> str:
        """The file.

        Examples
        --------
        >>> plan = Plan("10.0.0.1", ("10.0.0.2", "10.0.0.3"), {"congctl": "bbr"}, {})
        >>> print(plan.toml("bbr"))
        # On each host: fanin-host apply FILE; and back: fanin-host undo
        format = 1
        title = "bbr"
        <BLANKLINE>
        [servers]
        hosts = ["10.0.0.2", "10.0.0.3"]
        peers = ["10.0.0.1"]
        route = { congctl = "bbr" }
        <BLANKLINE>
        """
        parts = [
            f"# On each host: fanin-host apply FILE; and back: fanin-host undo\nformat = {FORMAT}\ntitle = {toml_string(title)}"
        ]
        ends = (
            ("servers", self.servers, (self.aggregator,), self.at_servers),
            ("aggregator", (self.aggregator,), self.servers, self.at_aggregator),
        )
        parts += [self._end(name, hosts, peers, options) for name, hosts, peers, options in ends if options]
        return "\n\n".join(parts) + "\n"

    def _end(self, name: str, hosts: Sequence[str], peers: Sequence[str], options: Mapping[str, str]) -> str:
        lines = [f"[{name}]", f"hosts = {json.dumps(list(hosts))}", f"peers = {json.dumps(list(peers))}"]
        if self.twin is not None and options.get("congctl") == self.twin.kernel_name:
            lines.append(f"twin = {toml_string(self.twin.name)}")
            if self.twin.params:
                lines.append(f"params = {_inline({key: str(value) for key, value in self.twin.params.items()})}")
        lines.append(f"route = {_inline({option: toml_string(value) for option, value in options.items()})}")
        return "\n".join(lines)


def _inline(values: Mapping[str, str]) -> str:
    return "{ " + ", ".join(f"{key} = {value}" for key, value in values.items()) + " }"
