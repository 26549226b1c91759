"""What a worker writes to the process that asked: pieces of a kind and a length. They are data alone, since code may have written them."""

from __future__ import annotations

import io
import json
import os
import struct
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from fanin.statistics.schema import schema

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
    """Takes bytes as they come and gives whole pieces.

    Parameters
    ----------
    room : int, optional
        Bytes that all pieces together may have; None: any number.
    """

    def __init__(self, room: int | None = None) -> None:
        self._buffer, self._room = bytearray(), room

    def take(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Kinds and bodies that are whole now.

        Raises
        ------
        OverflowError
            When a piece says that it is longer than the room that is left.
        """
        self._buffer += data
        while len(self._buffer) >= HEAD.size:
            kind, length = HEAD.unpack_from(self._buffer)
            if self._room is not None and length > self._room:
                raise OverflowError(f"it has {length} bytes, and there is room for {self._room}")
            if len(self._buffer) < HEAD.size + length:
                return
            body = bytes(self._buffer[HEAD.size : HEAD.size + length])
            del self._buffer[: HEAD.size + length]
            if self._room is not None:
                self._room -= length
            yield kind, body


def named(body: bytes) -> tuple[str, bytes]:
    """The name of a piece's frame, and the frame as Arrow.

    Examples
    --------
    >>> read, write = os.pipe()
    >>> Writer(write).frames({"a": pl.DataFrame({"x": [1, 2]})})
    >>> [(kind, body)] = Reader().take(os.read(read, 65536))
    >>> name, arrow = named(body)
    >>> name, frame(arrow)["x"].to_list()
    ('a', [1, 2])
    >>> os.close(read), os.close(write)
    (None, None)
    """
    end = 1 + body[0]
    return body[1:end].decode(), body[end:]


def frame(arrow: bytes) -> pl.DataFrame:
    """A frame of Arrow that no code wrote: Polars takes it as it is, and may wait for ever over what is not Arrow, or abort."""
    return pl.read_ipc(io.BytesIO(arrow))


def oddity(frames: dict[str, pl.DataFrame]) -> str | None:
    """What no run leaves: a column of another type, without a value, or with one that is no number or below zero. None where there is nothing of it.

    Examples
    --------
    >>> oddity({"messages": pl.DataFrame({"completion_ms": [float("nan")]})})
    '`messages` has a `completion_ms` that is no number'
    """
    for table in schema():
        rows = frames.get(table.name, pl.DataFrame())
        for column in table.columns:
            if column.name not in rows.columns:
                continue
            values, where = rows[column.name], f"`{table.name}` has a `{column.name}`"
            if str(values.dtype) != column.type:
                return f"{where} of type {values.dtype}"
            if values.null_count() and not column.nullable:
                return f"{where} without a value"
            if values.dtype.is_float() and not values.drop_nulls().is_finite().all():
                return f"{where} that is no number"
            if values.dtype.is_numeric() and (values < 0).any():
                return f"{where} below zero"
    return None


MOST_TOLD = 1_000
"""Characters of a sentence, at most: code may raise an exception with any text."""


def error_of(body: bytes) -> tuple[str, str]:
    """The class and the sentence of an error, on a line of bounded length without characters that steer a terminal.

    Raises
    ------
    ValueError
        When it is no error, or one without a word.
    """
    told = json.loads(body)
    message = printable(str(told["message"])).strip()
    if not message:
        raise ValueError("its error says nothing")
    return str(told["class"]), message if len(message) <= MOST_TOLD else f"{message[:MOST_TOLD]} ..."


SAID_OF_CODE = {
    "title": str, "source": str, "version": str, "linux_name": (str, type(None)), "needs_ecn": bool, "needs": list,
    "recovery": (str, type(None)), "params": list, "known": bool,
}  # fmt: skip
"""What a look at code gives (``fanin.confined.describe``)."""

PARAM = (str, bool, float, float, float, str, str)
"""A parameter: name, whether it is a flag, default, least, most, source, help."""


def looked_at(told: Any) -> dict[str, Any]:
    """A look at code as a worker gives it, its parameters as tuples.

    Raises
    ------
    ValueError
        When it is anything else.
    """

    def are(values: Any, kind: type) -> bool:
        return isinstance(values, list) and all(isinstance(value, kind) for value in values)

    def fits(values: Any, kinds: Iterable[Any]) -> bool:
        return all(isinstance(value, kind) for value, kind in zip(values, kinds, strict=True))

    said: Any = told.get("said") if isinstance(told, dict) else None
    if (
        isinstance(said, dict)
        and said.keys() == SAID_OF_CODE.keys()
        and fits((said[key] for key in SAID_OF_CODE), SAID_OF_CODE.values())
        and are(said["needs"], str)
        and are(said["params"], list)
        and all(len(param) == len(PARAM) and fits(param, PARAM) for param in said["params"])
        and are(told.get("files"), str)
        and (told.get("object") is None or (are(told["object"], str) and len(told["object"]) == 2))
    ):
        return {**told, "said": {**said, "params": [tuple(param) for param in said["params"]]}}
    raise ValueError("it is no description of an algorithm")


def printable(text: str) -> str:
    r"""Text of code's without characters that steer a terminal.

    Examples
    --------
    >>> printable("a\x1b[31mred\nb")
    'a[31mred b'
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "" for c in text)
