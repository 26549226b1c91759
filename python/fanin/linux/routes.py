"""A congestion control for one destination (``ip route ... congctl``), with the undo remembered before the route exists."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fanin.errors import EngineError

PROTOCOL = "197"
"""Marks our routes in the kernel's table (``ip route show proto 197``)."""


@dataclass(frozen=True)
class Route:
    """One destination that has a congestion control of its own."""

    destination: str
    name: str
    #: Process that takes it back when it ends, and when that began (clock ticks since boot); 0: stays until undone.
    owner: int = 0
    owner_began: int = 0
    #: Network namespace that has it, as the inode of /proc/PID/ns/net.
    namespace: int = 0

    @property
    def is_here(self) -> bool:
        """It is in the namespace of this process."""
        return self.namespace in (0, _here())

    @property
    def is_abandoned(self) -> bool:
        """The process that was to take it back is gone."""
        return self.owner != 0 and _began(self.owner) != self.owner_began


def state_file() -> Path:
    """Where routes are remembered: gone with a reboot, as they are."""
    return Path(os.environ.get("FANIN_STATE", "/run/fanin")) / "routes.json"


def remembered() -> list[Route]:
    """Every route that fanin made and has not undone."""
    try:
        rows = json.loads(state_file().read_text())
    except (OSError, ValueError):
        return []
    return [Route(**row) for row in rows]


def check(destination: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address that ``destination`` is."""
    try:
        return ipaddress.ip_address(destination)
    except ValueError:
        raise EngineError(f"`{destination}` is not an address of one host, as 10.0.0.7 is") from None


def add(destination: str, name: str, *, owner: int = 0) -> Route:
    """Give new connections to ``destination`` the congestion control ``name``.

    Parameters
    ----------
    destination : str
        IPv4 or IPv6 address of one host.
    name : str
        As in ``tcp_available_congestion_control``.
    owner : int
        Process id; the route is undone by the next command once that process is gone. 0: it stays.

    Raises
    ------
    fanin.errors.EngineError
        If it is no address, has a route of its own already, or the kernel refuses.
    """
    address = check(destination)
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if name not in available:
        raise EngineError(
            f"the kernel has no `{name}`; it has {', '.join(available)}: load a twin first (fanin linux load)"
        )
    if any(route.destination == destination and route.is_here for route in remembered()):
        raise EngineError(
            f"{destination} has a route of fanin's already; undo it first: fanin linux route {destination} --undo"
        )
    [way] = _ip("-j", "route", "get", destination)
    route = Route(destination, name, owner, (_began(owner) or 0) if owner else 0, _here())
    _remember([*remembered(), route])
    words = [
        "route",
        "add",
        f"{address}/{address.max_prefixlen}",
        "dev",
        way["dev"],
        "proto",
        PROTOCOL,
        "congctl",
        name,
    ]
    if "gateway" in way:
        words += ["via", way["gateway"]]
    if "prefsrc" in way:
        words += ["src", way["prefsrc"]]
    try:
        _ip(*words)
    except EngineError:
        _remember([r for r in remembered() if r != route])
        raise
    return route


def undo(destination: str) -> None:
    """Take back what :func:`add` did in this network namespace; the destination is routed as before."""
    known = [route for route in remembered() if route.destination == destination and route.is_here]
    if not known:
        raise EngineError(f"fanin made no route to {destination}; `fanin linux status` shows those it made")
    _take_back(known)


def undo_of(names: list[str]) -> list[str]:
    """Take back every route to one of these congestion controls, in any network namespace; returns the destinations."""
    return _take_back([route for route in remembered() if route.name in names])


def tidy() -> list[str]:
    """Take back routes whose process was killed, in any network namespace; returns the destinations."""
    return _take_back([route for route in remembered() if route.is_abandoned])


def _take_back(gone: list[Route]) -> list[str]:
    for route in gone:
        _delete(route)
        _remember([r for r in remembered() if r != route])
    return [route.destination for route in gone]


def _delete(route: Route) -> None:
    address = ipaddress.ip_address(route.destination)
    within = []
    if not route.is_here:
        place = _place_of(route.namespace)
        if place is None:
            return  # gone with its namespace
        within = ["nsenter", f"--net={place}"]
    # It may have gone with its device.
    subprocess.run(
        [*within, "ip", "route", "del", f"{address}/{address.max_prefixlen}", "proto", PROTOCOL],
        capture_output=True,
        check=False,
    )


def _here() -> int:
    return Path("/proc/self/ns/net").stat().st_ino


def _place_of(namespace: int) -> Path | None:
    """A path of a network namespace: its name's, or that of a process in it."""
    for place in (*Path("/run/netns").glob("*"), *Path("/proc").glob("[0-9]*/ns/net")):
        with suppress(OSError):
            if place.stat().st_ino == namespace:
                return place
    return None


def _began(process: int) -> int | None:
    """When a process began: its number may be another's by now."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def _remember(routes: list[Route]) -> None:
    path = state_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not routes:
            path.unlink(missing_ok=True)
            return
        part = path.with_suffix(".part")
        part.write_text(json.dumps([route.__dict__ for route in routes]))
        part.replace(path)
    except OSError as error:
        raise EngineError(
            f"cannot remember the undo of a route in {path}: {error.strerror}; routes need root"
        ) from error


def _ip(*words: str) -> list[dict[str, Any]]:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise EngineError("`ip` is missing: apt install iproute2") from None
    if done.returncode:
        raise EngineError(f"ip {' '.join(words)}: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout) if done.stdout.startswith("[") else []
