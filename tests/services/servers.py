"""Servers in the namespaces: nginx, memcached, redis, gRPC, and one of this laboratory that holds answers back when it is asked to."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

from . import rack

NGINX = """
daemon off; master_process off; error_log {here}/error.log; pid {here}/pid;
events {{ worker_connections 512; }}
http {{
  access_log off; sendfile on; keepalive_requests 1000000; keepalive_timeout 600; root {files};
  client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f; uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;
  server {{ listen 80; {tls} }}
}}
"""
TLS = "listen 443 ssl; ssl_certificate {files}/cert.pem; ssl_certificate_key {files}/key.pem;"
SIZES = range(1024, 64 * 1024 + 1, 1024)
"""Sizes of nginx's files, in bytes; their names."""
STORES = {"memcached": 11211, "redis": 6379}
KEYS = 20
"""What the stores hold."""


def missing(kind: str) -> str | None:
    """Why there can be no such server here; None where there can."""
    program = {"nginx": "nginx", "memcached": "memcached", "redis": "redis-server"}.get(kind)
    if program is not None and shutil.which(program) is None:
        return f"needs {program}"
    if kind == "grpc":
        try:
            import grpc  # noqa: F401
        except ImportError:
            return "needs grpcio"
    return None


@contextlib.contextmanager
def serving(kind: str, servers: int, folder: Path) -> Iterator[None]:
    """One server in each namespace, until the block ends."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*line: str, cwd: Path | None = None) -> None:
        running.append(subprocess.Popen(line, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def inside(number: int, *line: str) -> None:
        begin("ip", "netns", "exec", rack.server(number), "nice", "-n", "-10", *line)

    port = {"nginx": 80, "memcached": 11211, "redis": 6379, "grpc": 50051, "own": 80}[kind]
    try:
        match kind:
            case "nginx":
                files = _files(folder)
                for number in range(servers):
                    here = folder / f"nginx{number}"
                    here.mkdir()
                    tls = TLS.format(files=files)
                    (here / "conf").write_text(NGINX.format(here=here, files=files, tls=tls))
                    inside(number, "nginx", "-c", str(here / "conf"), "-p", str(here))
            case "memcached":
                for number in range(servers):
                    inside(number, "memcached", "-u", "root", "-t", "1", "-l", "0.0.0.0")
            case "redis":
                for number in range(servers):
                    inside(number, "redis-server", "--save", "", "--protected-mode", "no", "--dir", str(folder))
            case _:
                own = (sys.executable, "-m", "tests.services.servers", kind, str(servers))
                begin("nice", "-n", "-10", *own, cwd=Path(__file__).parents[2])
        until = time.monotonic() + 60
        for number in range(servers):
            probe = ["ip", "netns", "exec", rack.server(number), "ss", "-Hltn", f"sport = :{port}"]
            while not subprocess.run(probe, capture_output=True, check=False).stdout:
                if time.monotonic() > until:
                    raise RuntimeError(f"{kind} does not listen in {rack.server(number)}")
                time.sleep(0.1)
        if kind in STORES:
            line = [sys.executable, "-m", "tests.services.servers", kind, str(servers)]
            subprocess.run(line, cwd=Path(__file__).parents[2], check=True)
        yield
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
        for process in running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _files(folder: Path) -> Path:
    files = folder / "files"
    files.mkdir(mode=0o755)
    for size in SIZES:
        (files / str(size)).write_bytes(os.urandom(size))
    new = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=a",
    ]
    subprocess.run(
        [*new, "-keyout", str(files / "key.pem"), "-out", str(files / "cert.pem")], check=True, capture_output=True
    )
    return files


# ---- what runs in the namespaces


def enter(number: int) -> None:
    """Go into the namespace of a server with this thread."""
    with Path("/run/netns", rack.server(number)).open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), rack.server(number))


async def _http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    block = os.urandom(1 << 16)
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path, _, query = head.split(b" ")[1].decode().partition("?ms=")
            size = int(path.rsplit("/", 1)[1])
            if int(query or 0):
                await asyncio.sleep(int(query) / 1e3)
            body = (block * (size // len(block) + 1))[:size]
            if path.startswith("/chunked"):
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                for at in range(0, size, 4096):
                    piece = body[at : at + 4096]
                    writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                writer.write(b"0\r\n\r\n")
            else:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + body)
            await writer.drain()
    writer.close()


async def _binary(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    block = os.urandom(1 << 16)
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            asked = await reader.readexactly(8)
            size, delay = int.from_bytes(asked[:4], "big"), int.from_bytes(asked[4:], "big")
            if delay:
                await asyncio.sleep(delay / 1e3)
            writer.write(asked[:4] + (block * (size // len(block) + 1))[:size])
            await writer.drain()
    writer.close()


async def own(servers: int) -> None:
    """HTTP on port 80 and the laboratory's own protocol on 9000, in every namespace."""
    for number in range(servers):
        enter(number)
        for port, answer in ((9000, _binary), (80, _http)):
            await asyncio.start_server(answer, sock=socket.create_server(("", port), backlog=512))
    await asyncio.Event().wait()


def fill(store: str, servers: int) -> None:
    """Store values of 1 KiB, `k0` and so on; in Redis also `v0` and so on, each 1 KiB longer than the one before."""
    for number in range(servers):
        enter(number)
        with socket.create_connection(("127.0.0.1", STORES[store])) as connection, connection.makefile("rb") as answers:
            for key in range(KEYS):
                for name, size in ((f"k{key}", 1024), (f"v{key}", 1024 * (key + 1)))[: 1 + (store == "redis")]:
                    head = (
                        f"*3\r\n$3\r\nSET\r\n${len(name)}\r\n{name}\r\n${size}\r\n"
                        if store == "redis"
                        else f"set {name} 0 0 {size}\r\n"
                    )
                    connection.sendall(head.encode() + bytes(size) + b"\r\n")
                    answers.readline()


def grpc_server(servers: int) -> None:
    """A gRPC server in every namespace, each a process: its threads must be born there."""
    import grpc

    children = []
    for number in range(servers):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            enter(number)
            server = grpc.server(futures.ThreadPoolExecutor(4))
            block = os.urandom(1 << 17)

            def get(asked: bytes, context: object, block: bytes = block) -> bytes:
                time.sleep(int.from_bytes(asked[4:], "big") / 1e3)
                return block[: int.from_bytes(asked[:4], "big")]

            method = grpc.unary_unary_rpc_method_handler(get)
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("lab.Lab", {"Get": method}),))
            server.add_insecure_port("0.0.0.0:50051")
            server.start()
            server.wait_for_termination()
            os._exit(0)
        children.append(child)

    def end(*_: object) -> None:
        for child in children:
            os.kill(child, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.pause()


if __name__ == "__main__":
    kind, count = sys.argv[1], int(sys.argv[2])
    if kind in STORES:
        fill(kind, count)
    elif kind == "grpc":
        grpc_server(count)
    else:
        asyncio.run(own(count))
