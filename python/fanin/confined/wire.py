"""What a worker writes to the process that asked: pieces of a kind and a length. They are data alone, since code may have written them."""

from __future__ import annotations

import io
import json
import os
import struct
import threading
from collections.abc import Iterator

import polars as pl

HEAD = struct.Struct("<cQ")
PROGRESS, FRAME, SAID, ERROR, DONE = b"P", b"F", b"S", b"E", b"D"


class Writer:
    """Writes pieces to a descriptor; threads may share it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._lock = descriptor, threading.Lock()

    def put(self, kind: bytes, body: bytes = b"") -> None:
        """Write one piece."""
        with self._lock:
            for part in (HEAD.pack(kind, len(body)), body):
                view = memoryview(part)
                while view:
                    view = view[os.write(self._descriptor, view) :]

    def progress(self, fraction: float) -> None:
        """How far it is, from 0 to 1."""
        self.put(PROGRESS, struct.pack("<d", fraction))

    def frames(self, frames: dict[str, pl.DataFrame]) -> None:
        """Frames as Arrow, each with its name."""
        for name, frame in frames.items():
            file = io.BytesIO()
            frame.write_ipc(file)
            encoded = name.encode()
            self.put(FRAME, bytes([len(encoded)]) + encoded + file.getvalue())


class Reader:
    """Takes bytes as they come and gives whole pieces."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def take(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Kinds and bodies that are whole now."""
        self._buffer += data
        while len(self._buffer) >= HEAD.size:
            kind, length = HEAD.unpack_from(self._buffer)
            if len(self._buffer) < HEAD.size + length:
                return
            body = bytes(self._buffer[HEAD.size : HEAD.size + length])
            del self._buffer[: HEAD.size + length]
            yield kind, body


def frame_of(body: bytes) -> tuple[str, pl.DataFrame]:
    """The name and frame of a piece.

    Examples
    --------
    >>> read, write = os.pipe()
    >>> Writer(write).frames({"a": pl.DataFrame({"x": [1, 2]})})
    >>> [(kind, body)] = Reader().take(os.read(read, 65536))
    >>> name, frame = frame_of(body)
    >>> name, frame["x"].to_list()
    ('a', [1, 2])
    >>> os.close(read), os.close(write)
    (None, None)
    """
    end = 1 + body[0]
    return body[1:end].decode(), pl.read_ipc(io.BytesIO(body[end:]))


def error_of(body: bytes) -> tuple[str, str]:
    """The class and the sentence of an error, without characters that steer a terminal."""
    told = json.loads(body)
    return str(told["class"]), printable(str(told["message"]))


def printable(text: str) -> str:
    r"""Text of code's without characters that steer a terminal.

    Examples
    --------
    >>> printable("a\x1b[31mred\nb")
    'a[31mred b'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
