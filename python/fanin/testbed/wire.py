"""Two namespaces joined by one veth, whose sender's end is shaped to a rate: a host with a NIC, and another at its end."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fanin.errors import EngineError
from fanin.testbed import network

SENDER, SINK = "10.0.0.1", "10.0.0.2"

MTU = 1500

BURST = 1 << 18
"""Bytes that leave at once: several segments as large as offload makes them."""


_wires = itertools.count()


@dataclass(frozen=True, slots=True)
class Wire:
    """A wire that exists.

    Attributes
    ----------
    sender, sink : str
        Paths of the namespaces.
    sender_thread, sink_thread : int
        Kernel threads that take their packets.
    """

    sender: str
    sink: str
    sender_thread: int
    sink_thread: int


@contextmanager
def wire(mbps: int, cpus: tuple[int, int], *, offload: bool) -> Iterator[Wire]:
    """A wire while the block runs; the kernel removes it however the process ends.

    Parameters
    ----------
    mbps : int
        Rate of the sender's end.
    cpus : (int, int)
        Of the sink, and of the sender.
    offload : bool
        TCP hands over segments of up to 64 KB, as to a NIC that cuts them (TSO); without it, packets.

    Raises
    ------
    fanin.EngineError
        When the kernel refuses one of its parts.
    """
    with network.in_namespaces(lambda held: _build(mbps, cpus, offload, held)) as made:
        yield made


def _build(mbps: int, cpus: tuple[int, int], offload: bool, held: list[int]) -> Wire:
    from pyroute2 import IPRoute

    network.private_mounts()
    # The threads of a wire that is gone may be there a little longer: no two wires have a name in common.
    number = next(_wires)
    devices = [f"{end}{os.getpid():x}.{number:x}" for end in "ws"]
    sender, sink = (network.new_namespace(held) for _ in devices)
    network.enter(sender)
    address = "02:00:00:00:00:01"
    with IPRoute() as route:
        peer = {"ifname": devices[1], "net_ns_fd": sink, "address": address}
        route.link("add", ifname=devices[0], kind="veth", mtu=MTU, address=address, peer=peer)
    for fd, device, own in zip((sender, sink), devices, (SENDER, SINK), strict=True):
        network.enter(fd)
        network.no_ipv6()
        whole = offload and fd == sender
        network.offloads(device, gro=True, segments=whole)
        with IPRoute() as route:
            [index] = route.link_lookup(ifname=device)
            limits = {} if whole else {"gso_max_segs": 1}
            route.link("set", index=index, arp=False, gro_max_size=network.GRO_BYTES, **limits)
            route.addr("add", index=index, address=own, prefixlen=32)
            route.link("set", index=index, state="up")
            route.route("add", dst="10.0.0.0/8", oif=index, prefsrc=own, scope=253)
            if fd == sender:
                route.tc("add", "tbf", index, 0x10000, rate=f"{mbps}mbit", burst=BURST, latency="10ms")
        network.own_thread(device)
        # A veth gives what comes in large segments not to the thread, but to the sender's CPU, if nothing steers it.
        network.steer(device, cpus[0] if fd == sink else cpus[1])
    threads = [network.kernel_threads(f"napi/{device}-") for device in devices]
    if any(len(found) != 1 for found in threads):
        raise EngineError("this kernel has no threads of their own for the packets of a veth")
    [[of_sender], [of_sink]] = threads
    return Wire(network.path_of(sender), network.path_of(sink), of_sender, of_sink)
