"""A congestion control for one destination (``ip route ... congctl``), with the undo remembered before the route exists."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
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
    #: Process that takes it back when it ends; 0: stays until undone.
    owner: int = 0


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
    try:
        address = ipaddress.ip_address(destination)
    except ValueError:
        raise EngineError(f"`{destination}` is not an address of one host, as 10.0.0.7 is") from None
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split()
    if name not in available:
        raise EngineError(
            f"the kernel has no `{name}`; it has {', '.join(available)}: load a twin first (fanin linux load)"
        )
    if any(route.destination == destination for route in remembered()):
        raise EngineError(
            f"{destination} has a route of fanin's already; undo it first: fanin linux route {destination} --undo"
        )
    [way] = _ip("-j", "route", "get", destination)
    _remember([*remembered(), route := Route(destination, name, owner)])
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
        _remember([r for r in remembered() if r.destination != destination])
        raise
    return route


def undo(destination: str) -> None:
    """Take back what :func:`add` did; the destination is routed as before."""
    known = [route for route in remembered() if route.destination == destination]
    if not known:
        raise EngineError(f"fanin made no route to {destination}; `fanin linux status` shows those it made")
    _delete(destination)
    _remember([route for route in remembered() if route.destination != destination])


def undo_of(names: list[str]) -> list[str]:
    """Take back every route to one of these congestion controls; returns the destinations."""
    gone = [route.destination for route in remembered() if route.name in names]
    for destination in gone:
        undo(destination)
    return gone


def tidy() -> list[str]:
    """Take back routes whose process was killed; returns the destinations."""
    gone = [r.destination for r in remembered() if r.owner and not Path(f"/proc/{r.owner}").exists()]
    for destination in gone:
        undo(destination)
    return gone


def _delete(destination: str) -> None:
    address = ipaddress.ip_address(destination)
    # It may have gone with its device.
    subprocess.run(
        ["ip", "route", "del", f"{address}/{address.max_prefixlen}", "proto", PROTOCOL],
        capture_output=True,
        check=False,
    )


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
