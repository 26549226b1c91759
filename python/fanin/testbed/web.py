"""HTTP instead of bare messages: nginx in every server's namespace, one process each, which ends with this one."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fanin.errors import EngineError, ScenarioError
from fanin.testbed.processes import PLAYER_PRIORITY, real_time

PROGRAMS = {"nginx": "nginx-light", "nsenter": "util-linux", "setpriv": "util-linux"}
"""What the servers are started with, and Debian's packages."""

START_S = 20.0
"""How long a server may take to listen."""

CONFIGURATION = """\
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    default_type application/octet-stream;
    sendfile on;
    tcp_nodelay on;
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
{listens}
        root {files};
    }}
}}
"""


def check() -> None:
    """Raise when a program is missing."""
    missing = {name: package for name, package in PROGRAMS.items() if shutil.which(name) is None}
    if missing:
        packages = " ".join(dict.fromkeys(missing.values()))
        raise EngineError(f"the engine testbed-http needs {', '.join(missing)}; Debian: apt-get install {packages}")


def server_algorithms(plan: Mapping[str, Any]) -> dict[int, str]:
    """Congestion control of each host that serves: nginx has no option for it, so it is its namespace's route that says it.

    Raises
    ------
    fanin.ScenarioError
        When a host would need two.
    """
    chosen: dict[int, str] = {}
    for connection in plan["connections"]:
        host, cc = connection["server"], connection["cc"]
        if chosen.setdefault(host, cc) != cc:
            raise ScenarioError(
                f"cc: one server would use `{chosen[host]}` and `{cc}`, and with HTTP a host has one; use --engine testbed"
            )
    return chosen


@contextmanager
def servers(
    plan: Mapping[str, Any], namespaces: Sequence[str], folder: Path, cpu: int, environment: Mapping[str, str]
) -> Iterator[None]:
    """Nginx serves a file of each response's size in every server's namespace while the block runs."""
    check()
    files = folder / "files"
    files.mkdir()
    for bytes_ in {message["bytes"] for message in plan["messages"]}:
        if bytes_ is None:
            raise ScenarioError("workload: an endless message has no HTTP response; use --engine testbed")
        with files.joinpath(str(bytes_)).open("wb") as file:
            file.truncate(bytes_)
    ports: dict[int, set[int]] = {}
    for connection in plan["connections"]:
        ports.setdefault(connection["server"], set()).add(connection["server_port"])
    with ExitStack() as stack:
        for host, wanted in ports.items():
            own = folder / f"nginx-{host}"
            own.mkdir()
            address = plan["hosts"][host]["address"]
            listens = "\n".join(f"        listen {address}:{port} backlog=65535;" for port in sorted(wanted))
            own.joinpath("nginx.conf").write_text(CONFIGURATION.format(folder=own, files=files, listens=listens))
            stack.enter_context(_server(own, namespaces[host], cpu, environment))
        yield


@contextmanager
def _server(folder: Path, namespace: str, cpu: int, environment: Mapping[str, str]) -> Iterator[None]:
    # It is killed when the thread that starts it ends, also when that was killed.
    command = ["setpriv", "--pdeathsig", "KILL", "nsenter", f"--net={namespace}"]
    command += ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    with folder.joinpath("console").open("wb") as console:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env={**os.environ, **environment}
        )
    try:
        began = time.monotonic()
        while not folder.joinpath("pid").exists() or not folder.joinpath("pid").read_text().strip():
            if process.poll() is not None or time.monotonic() - began > START_S:
                said = folder.joinpath("console").read_text(errors="replace").strip().splitlines()
                raise EngineError(f"nginx did not start: {said[-1] if said else 'it said nothing'}")
            time.sleep(0.01)
        real_time(process.pid, cpu, PLAYER_PRIORITY)
        yield
    finally:
        process.kill()
        process.wait()
