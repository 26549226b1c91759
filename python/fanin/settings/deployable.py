"""Which algorithms a Linux host can run, and how it gets them."""

from __future__ import annotations

import functools
import importlib.util
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Deployment:
    """How a host gets an algorithm.

    Attributes
    ----------
    kernel_name : str
        As in ``net.ipv4.tcp_congestion_control``.
    twin : bool
        It is fanin's twin, loaded into a running kernel by ``fanin-host load``; else Linux has it.
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

    where = _native.deployment(cc)
    if where.receiver_shim:
        # A receiver's program is tried by hand (docs/linux.md): its senders have to run Reno besides, on every server at once.
        return None
    if where.sender_shim:
        _, _, sender = cc.partition("+")
        base = deployment(sender) if sender else None
        return replace(base, shim=True) if base is not None else None
    if where.kernel is not None and where.kernel in {cc, cc.removeprefix("hystart+")}:
        return Deployment(where.kernel)
    if where.twin is not None and _twins_can_be_loaded():
        return Deployment(where.twin, twin=True)
    return None


def around(today: str) -> list[str]:
    """What stands in front of the algorithm that the hosts run, where hosts can run that, in the order of the registry.

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
