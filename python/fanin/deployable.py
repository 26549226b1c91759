"""Which algorithms a Linux host can run, and the lines that try one and take it back."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
    shim : bool
        fanin's library stands in front of the sending application (``LD_PRELOAD``).
    """

    kernel_name: str
    twin: bool = False
    shim: bool = False

    @property
    def module(self) -> str | None:
        """Kernel module to load; None where it is built in (net/ipv4/Kconfig) or loaded otherwise."""
        return None if self.twin or self.kernel_name == "reno" else f"tcp_{self.kernel_name}"


LIBRARY = "target/release/libfanin_tcprand.so"
"""TCPRand in front of an application, as ``make linux`` builds it."""

COMMAND = "SERVER_COMMAND"
"""In lines: what starts the application."""

WIRE = 1538
"""Bytes that a full Ethernet packet takes of a link: MTU 1500, header, check sequence, preamble and gap."""

BOTH_ENDS = frozenset({"dctcp", "d2tcp", "l2dct"})
"""Their receivers echo marks as RFC 8257 section 3.2 asks, which other algorithms' receivers do not (tcp_dctcp.c, dctcp_cwnd_event)."""


def deployment(cc: str) -> Deployment | None:
    """How a host gets this algorithm; None for a model that no kernel has.

    The registry says it. Where several models name the same algorithm of the kernel, the one of that name is what the kernel runs: ``reno``
    is, ``newreno`` and ``sack`` fix how losses are repaired, which in Linux no option does.

    Examples
    --------
    >>> deployment("bbr")
    Deployment(kernel_name='bbr', twin=False, shim=False)
    >>> deployment("newreno") is None
    True
    >>> deployment("tcprand+cubic")
    Deployment(kernel_name='cubic', twin=False, shim=True)
    """
    from fanin import _native

    words, _ = _native.deployment(cc)
    shim, over, below = words.rpartition(" over ")
    if over:
        # A receiver's program is tried by hand (docs/linux.md): its senders have to run Reno besides, on every server at once.
        base = deployment(cc.partition("+")[2]) if shim == "application shim" and "+" in cc else None
        return replace(base, shim=True) if base is not None else None
    kernel = re.fullmatch(r"kernel \((\w+)\).*", below)
    if kernel and kernel[1] in {cc, cc.removeprefix("hystart+")}:
        return Deployment(kernel[1])
    twin = re.search(r"twin \((\w+)\)", below)
    if twin and _twins_can_be_loaded():
        return Deployment(twin[1], twin=True)
    return None


def around(today: str) -> list[str]:
    """What stands in front of the algorithm that hosts run today, where hosts can run that, in the order of the registry.

    Examples
    --------
    >>> around("cubic"), around("bbr")
    (['gss+cubic', 'tcprand+cubic'], ['tcprand+bbr'])
    """
    from fanin.registries import entries

    if "+" in today or (base := deployment(today)) is None:
        return []
    layers = [e.name for e in entries("cc") if e.details["role"] in ("slow start", "wrapper")]
    found = {f"{layer}+{today}": deployment(f"{layer}+{today}") for layer in layers}
    # One that the same line gives is the same on a host.
    return [name for name, how in found.items() if how is not None and how != base]


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
    cc: str,
    *,
    aggregator: str,
    now: str | None,
    mark: str | None,
    quickack: bool = False,
    route: str = "",
    load: Sequence[str] = (),
    environment: Sequence[str] = (),
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
    quickack : bool
        It was simulated with a receiver that acknowledges every packet.
    route : str
        Options of ``ip route`` besides, such as ``rto_min 5ms``.
    load : sequence of str
        Parameters of the twin, as ``fanin linux load --param`` takes them.
    environment : sequence of str
        What the library in front of the application reads, such as ``FANIN_TCPRAND_MIN=200``.

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
    kernel = cc.partition("+")[2] if how.shim else cc
    loads = [f"modprobe {how.module}"] if how.module else []
    if how.twin:
        loads = [" ".join([f"fanin linux load {kernel}", *(f"--param {one}" for one in load)])]
    unload = [f"fanin linux unload {kernel}"] if how.twin else []
    from fanin import _native

    ecn = _native.needs_ecn(cc)
    needs = []
    if ecn:
        at = f" above {mark} in the queue (K, `mark` in a rack file)" if mark else ""
        needs.append(
            f"Switches mark packets (ECN){at}: on every port of the path, at the queue as it is now, not at its average "
            "(as WRED: minimum and maximum threshold both at that value, probability 100%)."
        )
    if cc in BOTH_ENDS:
        needs.append(
            f"Both ends run {cc}: its receiver tells the sender which packets were marked. On {aggregator} type the same lines with each "
            f"server's address in place of {aggregator}."
        )
    if quickack:
        needs.append(
            f"{aggregator} has to acknowledge every packet: on it, `ip {family}route change ... quickack 1` on the routes to the servers."
        )
    if how.shim:
        needs.append(
            f"{COMMAND} stands for what starts the server: it is started again with the library in front (`make linux` builds it; docs/linux.md), and "
            "to take it back once more without."
        )
    hop = f"$(ip {family}-o route get {aggregator} | grep -oE '(via|dev) [^ ]+' | xargs)"
    trial: list[str] = []
    undo: list[str] = []
    # A library in front of what hosts run already needs neither module nor route.
    if not how.shim or kernel != now or route:
        options = f" {route}" if route else ""
        trial = [*loads, f"ip {family}route add {aggregator}/{bits} {hop} congctl {how.kernel_name}{options}"]
        undo = [f"ip {family}route del {aggregator}/{bits}", *unload]
    if how.shim:
        trial = [*trial, " ".join([f"LD_PRELOAD={LIBRARY}", *environment, COMMAND])]
        undo = [COMMAND, *undo]
    if route:
        needs.append(f"`{route}` is an option of routes: for all connections, put it on the route that they use.")
    return Recommendation(
        cc=cc,
        hosts="each server and the aggregator" if cc in BOTH_ENDS else "each server",
        needs=tuple(needs),
        trial=tuple(trial),
        undo=tuple(undo),
        everywhere=f"sysctl -w net.ipv4.tcp_congestion_control={how.kernel_name}",
        undo_everywhere=f"sysctl -w net.ipv4.tcp_congestion_control={_name_of(now)}",
        check=f"ss -ti dst '[{aggregator}]'" if family else f"ss -ti dst {aggregator}",
    )


def load_parameters(cc: str, rack: Mapping[str, str]) -> list[str]:
    """What a twin is told when it is loaded, of the rack that it was simulated on.

    Examples
    --------
    >>> load_parameters("trim", {"rate": "10Gbps", "receiver_rate": "1Gbps"}), load_parameters("cubic", {"rate": "1Gbps"})
    (['rate_pps=81274'], [])
    """
    from fanin import _native

    rate = rack.get("receiver_rate", rack.get("rate"))
    if "trim" not in cc.split("+") or rate is None:
        return []
    return [f"rate_pps={_native.quantity('rate', rate, 'rack.rate') / 8 / WIRE:.0f}"]


def _name_of(cc: str | None) -> str:
    """What the hosts go back to; Linux's default where that is not known."""
    how = deployment(cc) if cc else None
    return how.kernel_name if how else "cubic"
