"""A network namespace per host and one for the switch, joined by veth.

None has a name in ``/run/netns``: they live as long as file descriptors of this process and sockets of its children do. However it ends, the
kernel removes them and every device in them; nothing is left to be found by the next run.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fanin.errors import EngineError

_CLONE_NEWNS, _CLONE_NEWNET = 0x00020000, 0x40000000
_MS_REC, _MS_PRIVATE, _MNT_DETACH = 0x4000, 1 << 18, 2
_SIOCETHTOOL = 0x8946

# linux/ethtool.h.
_CHECKSUM, _TSO, _GSO, _GRO = 0x17, 0x1F, 0x24, 0x2C

GRO_BYTES = 1
"""Least size of a merged packet (gro_max_size): GRO is on for the thread that comes with it, and merges nothing."""

_libc = ctypes.CDLL(None, use_errno=True)

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What a host's namespace is given.

    Attributes
    ----------
    address : str
        IPv4 address.
    mtu : int
        Largest IP packet, bytes.
    sysctls : sequence of (str, str)
        Paths below ``/proc/sys`` and values.
    initial_window : int
        ``initcwnd`` of its route, segments; 0: the kernel's.
    quickack : bool
        ``quickack 1`` of its route.
    congctl : str
        Congestion control of its route; empty: what its sockets ask for.
    """

    address: str
    mtu: int
    sysctls: Sequence[tuple[str, str]]
    initial_window: int
    quickack: bool
    congctl: str = ""


@dataclass(frozen=True, slots=True)
class Network:
    """Namespaces that exist.

    Attributes
    ----------
    switch : str
        Path of the switch's namespace.
    hosts : list of str
        Paths of the hosts' namespaces.
    ports : list of str
        Devices of the switch, one per host.
    device : str
        The device of every host.
    threads : list of int
        Kernel threads that take the hosts' packets.
    """

    switch: str
    hosts: list[str]
    ports: list[str]
    device: str
    threads: list[int]


@contextmanager
def network(hosts: Sequence[HostSettings]) -> Iterator[Network]:
    """Make a namespace for each host while the block runs.

    Raises
    ------
    fanin.EngineError
        When the kernel refuses one of its parts.
    """
    with in_namespaces(lambda held: _build(hosts, held)) as made:
        yield made


@contextmanager
def in_namespaces(build: Callable[[list[int]], _Made]) -> Iterator[_Made]:
    """What `build` makes in namespaces of its own, while the block runs.

    Parameters
    ----------
    build : callable
        Is given a list for the file descriptors of what it makes, and called in a thread of its own: it goes from namespace to namespace, and
        takes none of the process with it.

    Raises
    ------
    fanin.EngineError
        When the kernel refuses a part.
    """
    held: list[int] = []
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="fanin-testbed") as thread:
            making = thread.submit(build, held)
        error = making.exception()
        if isinstance(error, Exception) and not isinstance(error, EngineError):
            raise EngineError(f"the testbed's namespaces could not be made: {error}") from error
        yield making.result()
    finally:
        for fd in held:
            os.close(fd)


def _build(hosts: Sequence[HostSettings], held: list[int]) -> Network:
    from pyroute2 import IPRoute

    # The hosts' devices have this name: their kernel threads are told by it.
    device = f"f{os.getpid():x}"
    private_mounts()
    switch = new_namespace(held)
    fds = [new_namespace(held) for _ in hosts]
    enter(switch)
    no_ipv6()
    ports = [f"p{number}" for number in range(len(hosts))]
    with IPRoute() as route:
        for port, fd, settings in zip(ports, fds, hosts, strict=True):
            peer = {"ifname": device, "net_ns_fd": fd}
            # All hosts have one address on the link: no frame needs another (ARP is off).
            address = "02:00:00:00:00:01"
            route.link("add", ifname=port, kind="veth", mtu=settings.mtu, peer={**peer, "address": address})
            # veth gives packets to the thread of the other end only if this end segments nothing.
            offloads(port, gro=False)
            route.link("set", ifname=port, state="up", arp=False)
    for fd, settings in zip(fds, hosts, strict=True):
        enter(fd)
        _host(device, settings)
    threads = kernel_threads(f"napi/{device}-")
    return Network(path_of(switch), [path_of(fd) for fd in fds], ports, device, threads)


def _host(device: str, settings: HostSettings) -> None:
    from pyroute2 import IPRoute

    no_ipv6()
    for name, value in settings.sysctls:
        path = Path("/proc/sys", name)
        try:
            path.write_text(value)
        except OSError as error:
            raise EngineError(
                f"this kernel does not take {value} for {name.replace('/', '.')}: {error.strerror}"
            ) from error
    offloads(device, gro=True)
    metrics: dict[str, int | str] = {}
    if settings.initial_window:
        metrics["initcwnd"] = settings.initial_window
    if settings.quickack:
        metrics["quickack"] = 1
    if settings.congctl:
        metrics["cc_algo"] = settings.congctl
    with IPRoute() as route:
        [index] = route.link_lookup(ifname=device)
        limits: dict[str, Any] = {"gso_max_segs": 1, "gro_max_size": GRO_BYTES}
        route.link("set", index=index, mtu=settings.mtu, arp=False, **limits)
        route.addr("add", index=index, address=settings.address, prefixlen=32)
        route.link("set", index=index, state="up")
        more = {"metrics": metrics} if metrics else {}
        route.route("add", dst="10.0.0.0/8", oif=index, prefsrc=settings.address, scope=253, **more)
    own_thread(device)


def own_thread(device: str) -> None:
    """Takes the device's packets in a kernel thread: some kernels skip BPF programs on top of process 1 (docs/linux.md)."""
    with _of_device(device) as folder:
        (folder / "threaded").write_text("1")


def steer(device: str, cpu: int) -> None:
    """Have the device's packets taken by a CPU, where they come without a thread (receive packet steering)."""
    with _of_device(device) as folder:
        (folder / "queues/rx-0/rps_cpus").write_text(f"{1 << cpu:x}")


@contextmanager
def _of_device(device: str) -> Iterator[Path]:
    """The device's folder in a sysfs of this namespace."""
    with tempfile.TemporaryDirectory(prefix="fanin-sys-") as folder:
        place = os.fsencode(folder)
        # sysfs shows the devices of the namespace that it was mounted in.
        _call("mounting sysfs", _libc.mount(b"sysfs", place, b"sysfs", 0, None))
        try:
            yield Path(folder, "class/net", device)
        finally:
            _libc.umount2(place, _MNT_DETACH)


def kernel_threads(name: str) -> list[int]:
    """Kernel threads whose name begins so."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if entry.joinpath("comm").read_text().startswith(name[:15]):
                    found.append(int(entry.name))
    return found


def private_mounts() -> None:
    """What this thread mounts from here on is seen by itself alone."""
    _call("unshare", _libc.unshare(_CLONE_NEWNS))
    _call("a private /", _libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None))


def new_namespace(held: list[int]) -> int:
    """A network namespace that lives as long as its file descriptor, which is put to the others; this thread is in it."""
    _call("a new network namespace", _libc.unshare(_CLONE_NEWNET))
    fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    held.append(fd)
    return fd


def enter(fd: int) -> None:
    """Go to a network namespace, this thread alone."""
    _call("entering a network namespace", _libc.setns(fd, _CLONE_NEWNET))


def path_of(fd: int) -> str:
    """A namespace as other processes can open it."""
    return f"/proc/{os.getpid()}/fd/{fd}"


def _call(what: str, result: int) -> None:
    if result:
        raise EngineError(f"{what}: {os.strerror(ctypes.get_errno())}; the testbed needs root")


def no_ipv6() -> None:
    """No packets but those of the run: IPv6 looks for neighbours by itself."""
    for scope in ("all", "default"):
        with suppress(OSError):
            Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6").write_text("1")


def offloads(device: str, *, gro: bool, segments: bool = False) -> None:
    """Whole packets with whole checksums: what ``ethtool -K DEV tx off tso off gso off gro on|off`` does; with `segments` large ones without."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command, on in ((_CHECKSUM, segments), (_TSO, segments), (_GSO, segments), (_GRO, gro)):
            # struct ethtool_value, and struct ifreq with its address.
            value = ctypes.create_string_buffer(struct.pack("II", command, on))
            request = struct.pack("16sP16x", device.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
            except OSError as error:
                raise EngineError(f"offloads of {device}: {error.strerror}") from error
