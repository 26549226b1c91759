"""Which algorithms a Linux host can run, and the lines that try one and take it back."""

from __future__ import annotations

import functools
import importlib.util
import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any


@dataclass(frozen=True, slots=True)
class Deployment:
    """How a host gets an algorithm.

    Attributes
    ----------
    kernel_name : str
        As in ``net.ipv4.tcp_congestion_control``.
    twin : bool
        It is fanin's twin, loaded into a running kernel by ``fanin linux load``; else Linux has it.
    """

    kernel_name: str
    twin: bool = False

    @property
    def module(self) -> str | None:
        """Kernel module to load; None where it is built in (net/ipv4/Kconfig) or loaded otherwise."""
        return None if self.twin or self.kernel_name == "reno" else f"tcp_{self.kernel_name}"


BOTH_ENDS = frozenset({"dctcp", "d2tcp", "l2dct"})
"""Their receivers echo marks as RFC 8257 section 3.2 asks, which other algorithms' receivers do not (tcp_dctcp.c, dctcp_cwnd_event)."""


def deployment(cc: str) -> Deployment | None:
    """How a host gets this algorithm; None for a model that no kernel has.

    The registry says it. Where several models name the same algorithm of the kernel, the one of that name is what the kernel runs: ``reno``
    is, ``newreno`` and ``sack`` fix how losses are repaired, which in Linux no option does.

    Examples
    --------
    >>> deployment("bbr")
    Deployment(kernel_name='bbr', twin=False)
    >>> deployment("newreno") is None
    True
    """
    from fanin import _native

    words, _ = _native.deployment(cc)
    kernel = re.fullmatch(r"kernel \((\w+)\).*", words)
    if kernel and kernel[1] in {cc, cc.removeprefix("hystart+")}:
        return Deployment(kernel[1])
    twin = re.search(r"twin \((\w+)\)", words)
    if twin and " over " not in words and _twins_can_be_loaded():
        return Deployment(twin[1], twin=True)
    return None


@functools.cache
def _twins_can_be_loaded() -> bool:
    """Whether the command that loads twins is there."""
    return importlib.util.find_spec("fanin.linux") is not None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to type to try an algorithm, and to take it back.

    Attributes
    ----------
    cc : str
        The algorithm.
    hosts : str
        Where the lines are typed.
    needs : tuple of str
        What it needs besides, one sentence each.
    trial : tuple of str
        Shell lines that give it to new connections with the aggregator alone.
    undo : tuple of str
        Lines that take `trial` back.
    everywhere, undo_everywhere : str
        The line that gives it to all new connections of a host, and the line that takes that back.
    check : str
        A line that shows whether it is in use.
    """

    cc: str
    hosts: str
    needs: tuple[str, ...]
    trial: tuple[str, ...]
    undo: tuple[str, ...]
    everywhere: str
    undo_everywhere: str
    check: str

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "cc": self.cc,
            "hosts": self.hosts,
            "needs": list(self.needs),
            "trial": list(self.trial),
            "undo": list(self.undo),
            "everywhere": self.everywhere,
            "undo_everywhere": self.undo_everywhere,
            "check": self.check,
        }


def recommendation(
    cc: str, *, aggregator: str, now: str | None, mark: str | None, prompt_acks: bool = False
) -> Recommendation | None:
    r"""The lines that try `cc`; None when no host can run it.

    Parameters
    ----------
    cc : str
        Algorithm.
    aggregator : str
        Address of the host that the responses go to.
    now : str or None
        What the hosts run today, to go back to.
    mark : str or None
        The rack's marking threshold, for an algorithm that needs marks.
    prompt_acks : bool
        It was simulated with a receiver that acknowledges every packet.

    Examples
    --------
    >>> told = recommendation("bbr", aggregator="10.0.0.1", now="cubic", mark=None)
    >>> print(*told.trial, *told.undo, sep="\n")
    modprobe tcp_bbr
    ip route add 10.0.0.1/32 $(ip -o route get 10.0.0.1 | grep -oE '(via|dev) [^ ]+' | xargs) congctl bbr
    ip route del 10.0.0.1/32
    """
    how = deployment(cc)
    if how is None:
        return None
    family, bits = ("-6 ", 128) if ip_address(aggregator).version == 6 else ("", 32)
    load = [f"modprobe {how.module}"] if how.module else [f"fanin linux load {cc}"] if how.twin else []
    unload = [f"fanin linux unload {cc}"] if how.twin else []
    from fanin import _native

    ecn = _native.needs_switch(cc)
    needs = []
    if ecn:
        at = f" above {mark} in the queue (the rack's `mark`)" if mark else ""
        needs.append(
            f"Switches mark packets (ECN){at}: on every port of the path, at the queue as it is now, not at its average "
            "(as WRED: minimum and maximum threshold both at that value, probability 100%)."
        )
    if cc in BOTH_ENDS:
        needs.append(
            f"Both ends run {cc}: its receiver tells the sender which packets were marked. On {aggregator} type the same lines with each "
            f"server's address in place of {aggregator}."
        )
    if prompt_acks:
        needs.append(
            f"{aggregator} acknowledges every packet: on it, `ip {family}route change ... quickack 1` on the routes to the servers."
        )
    hop = f"$(ip {family}-o route get {aggregator} | grep -oE '(via|dev) [^ ]+' | xargs)"
    return Recommendation(
        cc=cc,
        hosts="each server and the aggregator" if cc in BOTH_ENDS else "each server",
        needs=tuple(needs),
        trial=(*load, f"ip {family}route add {aggregator}/{bits} {hop} congctl {how.kernel_name}"),
        undo=(f"ip {family}route del {aggregator}/{bits}", *unload),
        everywhere=f"sysctl -w net.ipv4.tcp_congestion_control={how.kernel_name}",
        undo_everywhere=f"sysctl -w net.ipv4.tcp_congestion_control={_name_of(now)}",
        check=f"ss -ti dst '[{aggregator}]'" if family else f"ss -ti dst {aggregator}",
    )


def _name_of(cc: str | None) -> str:
    """What the hosts go back to; Linux's default where that is not known."""
    how = deployment(cc) if cc else None
    return how.kernel_name if how else "cubic"
