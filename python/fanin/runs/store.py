"""Results on disk by what they are results of.

A store is a folder::

    store.json                      the store's format
    <engine>/<kk>/<key>/            one entry; kk are the first two characters of the key
        entry.json                  what it is, and the SHA-256 of each file
        <frame>.arrow               an Arrow stream; earlier versions wrote <frame>.parquet, which is read as well
    sweeps/<name>.parquet           the rows of a sweep's last time: made from entries, and made again by the same command

An entry is made beside its place and renamed into it, so that it is there whole or not at all, whatever ends the process. Entries of equal
keys are equal, so two writers do no harm. No time of day is written or read.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fanin import _native
from fanin.disk.cache import cache_folder
from fanin.disk.files import file_name, ordinary, shown
from fanin.disk.scratch import going, of_this_user, remove
from fanin.errors import OutputError
from fanin.process.limits import memory_limited
from fanin.runs.job import engine_digest
from fanin.runs.tables import Frames

FORMAT = 1
"""Version of the layout above."""

ENDING = ".arrow"
"""Of the file of a frame."""

SCRATCH = ".new-"
SWEEPS = "sweeps"


def _content(file: Path) -> bytes:
    with ordinary(file) as handle:
        return handle.read()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a store.

    Attributes
    ----------
    key, engine : str
        Of what it is the result.
    folder : Path
        Where it is.
    """

    key: str
    engine: str
    folder: Path

    def about(self) -> dict[str, Any]:
        """What its writer said of it; empty when it cannot be read."""
        try:
            said = json.loads(_content(self.folder / "entry.json"))
        except (OSError, ValueError, RecursionError):
            return {}
        return said if isinstance(said, dict) else {}

    def files(self) -> dict[str, str]:
        """The SHA-256 of each file that its writer listed; empty when that cannot be read."""
        files = self.about().get("files")
        if not isinstance(files, dict) or not all(isinstance(digest, str) for digest in files.values()):
            return {}
        return {name: digest for name, digest in files.items() if file_name(name) == name}

    def bytes(self) -> int:
        """What its files hold."""
        return sum(file.stat().st_size for file in self.folder.iterdir())

    def frames(self, names: Sequence[str] | None = None) -> Frames | None:
        """Its frames; None when one is missing or damaged."""
        about, files = self.about(), self.files()
        if about.get("format") != FORMAT or about.get("key") != self.key or not files:
            return None
        by_name = {file.rpartition(".")[0]: file for file in files}
        found = {}
        for name in by_name if names is None else names:
            file = by_name.get(name)
            try:
                content = _content(self.folder / file) if file is not None else b""
                if file is None or hashlib.sha256(content).hexdigest() != files[file]:
                    return None
                read = pl.read_ipc_stream if file.endswith(ENDING) else pl.read_parquet
                found[name] = read(io.BytesIO(content))
            except (OSError, pl.exceptions.PolarsError):
                return None
        return found

    def holds(self, name: str) -> bool:
        """Whether a frame is among those that its writer listed."""
        return any(file.rpartition(".")[0] == name for file in self.files())


@dataclass(slots=True)
class Kept:
    """How many results this process put into stores: what an interrupted command has to say."""

    runs: int = 0


KEPT = Kept()
"""Of this process."""


class Store:
    """A content-addressed store of frames.

    Parameters
    ----------
    folder : path
        Where it is; made when the first entry is written.
    engine : str, optional
        The engine whose results are looked up; the one that is loaded unless given.

    Raises
    ------
    fanin.OutputError
        When the folder holds something else, or a store of a newer format.

    Examples
    --------
    >>> import polars as pl, tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     store = Store(place)
    ...     store.put("0f" * 16, {"runs": pl.DataFrame({"seed": [1]})})
    ...     store.get("0f" * 16)["runs"]["seed"].to_list(), store.get("00" * 16)
    ([1], None)
    """

    def __init__(self, folder: str | Path, *, engine: str | None = None) -> None:
        self.folder = Path(folder)
        self.engine = engine or engine_digest()
        self._check()

    def _check(self) -> None:
        head = self.folder / "store.json"
        try:
            said = json.loads(_content(head))
            found = said["format"]
        except FileNotFoundError:
            if self.folder.is_dir() and any(not p.name.startswith(".") for p in self.folder.iterdir()):
                raise OutputError(
                    f"{shown(self.folder)}: it is no store, since it holds other files; choose another folder with --store"
                ) from None
            return
        except NotADirectoryError:
            raise OutputError(
                f"{shown(self.folder)}: it is a file, and a store is a folder; choose another with --store or FANIN_STORE"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise OutputError(
                f"{shown(head)}: cannot be read as the head of a store; choose another folder with --store, or remove the file to lose nothing "
                "but the format's number"
            ) from error
        if found != FORMAT:
            raise OutputError(
                f"{shown(self.folder)}: the store has format {found}, and this fanin ({_native.VERSION}) reads format {FORMAT}; use the "
                "fanin that wrote it, or choose another folder with --store"
            )

    def make(self) -> None:
        """Make the folder and prove that it can be written.

        Raises
        ------
        fanin.OutputError
            When it cannot.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            head = self.folder / "store.json"
            # First of all that is there: another process that looks meanwhile finds an empty folder, or a store.
            if not head.exists():
                self._write_whole(head, (json.dumps({"format": FORMAT}) + "\n").encode())
            (self.folder / self.engine).mkdir(exist_ok=True)
            Path(tempfile.mkdtemp(prefix=self._scratch_prefix(), dir=self.folder / self.engine)).rmdir()
            for left in self.scratch():
                remove(left)
        except OSError as error:
            raise self._unwritable(error) from error

    def get(self, key: str, names: Sequence[str] | None = None) -> Frames | None:
        """What was kept under this key; None if nothing, or if it is damaged."""
        return self.entry(key).frames(names)

    def entry(self, key: str) -> Entry:
        """Where the entry of this key is, or would be."""
        return Entry(key, self.engine, self.folder / self.engine / key[:2] / key)

    def put(self, key: str, frames: Frames, about: Mapping[str, object] | None = None, *, durable: bool = True) -> None:
        """Keep frames under a key, whole or not at all.

        Parameters
        ----------
        key : str
            Names what they are results of.
        frames : dict
            Frames by name.
        about : mapping, optional
            What a reader of the store should know of them: equal for equal keys.
        durable : bool
            Wait until the disk has them, so that they outlive a power cut. Without it an entry that a power cut spoilt is found by its digests
            and counts as missing; no end of the process spoils one.

        Raises
        ------
        fanin.OutputError
            When the disk is full or the store cannot be written.
        """
        target = self.entry(key).folder
        scratch: Path | None = None
        held = contextlib.ExitStack()
        try:
            if not target.parent.is_dir():
                try:
                    target.parent.mkdir(exist_ok=True)
                except FileNotFoundError:
                    self.make()
                    target.parent.mkdir(exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix=self._scratch_prefix(), dir=self.folder / self.engine))
            if memory_limited():
                # Else a process rarely ends so, and what it left goes with the next command.
                held.enter_context(going([scratch]))
            digests = {}
            for name in sorted(frames):
                buffer = io.BytesIO()
                # In one piece: how it was put together is no part of it. Zstandard makes a sixth less of it, in six times the time.
                frames[name].rechunk().write_ipc_stream(buffer, compression="lz4")
                digests[name + ENDING] = hashlib.sha256(buffer.getbuffer()).hexdigest()
                _write_file(scratch / (name + ENDING), buffer.getbuffer(), durable)
            head = {
                "format": FORMAT,
                "key": key,
                "engine": self.engine,
                "version": _native.VERSION,
                **(about or {}),
                "files": digests,
            }
            _write_file(scratch / "entry.json", (json.dumps(head, sort_keys=True) + "\n").encode(), durable)
            self._place(scratch, target, durable)
            KEPT.runs += 1
        except OSError as error:
            raise self._unwritable(error) from error
        finally:
            if scratch is not None:
                remove(scratch)
            held.close()

    def _place(self, scratch: Path, target: Path, durable: bool) -> None:
        for _ in range(3):
            try:
                scratch.rename(target)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                if durable:
                    _sync_folder(target.parent)
                return
            if Entry(target.name, self.engine, target).frames() is not None:
                return  # another writer was first
            # Damaged: moved away first, since two writers may both be here.
            aside = Path(tempfile.mkdtemp(prefix=self._scratch_prefix(), dir=self.folder / self.engine))
            with contextlib.suppress(FileNotFoundError):
                target.rename(aside / "damaged")
            remove(aside)
        raise OSError(errno.EBUSY, "another process keeps writing a damaged entry", str(target))

    def entries(self, *, every_engine: bool = False) -> Iterator[Entry]:
        """Entries in the order of their keys."""
        for engine in self.engines() if every_engine else [self.engine]:
            for shelf in _folders(self.folder / engine):
                if not shelf.name.startswith("."):
                    for folder in _folders(shelf):
                        yield Entry(folder.name, engine, folder)

    def engines(self) -> list[str]:
        """Engines that have entries here."""
        return [p.name for p in _folders(self.folder) if not p.name.startswith(".") and p.name != SWEEPS]

    def keep_sweep(self, name: str, rows: pl.DataFrame) -> None:
        """Keep the rows of a sweep under its name, instead of those of its last time.

        Raises
        ------
        fanin.OutputError
            When the disk is full or the store cannot be written.
        """
        try:
            folder = self.folder / SWEEPS
            folder.mkdir(exist_ok=True)
            buffer = io.BytesIO()
            rows.write_parquet(buffer)
            self._write_whole(folder / f"{file_name(name)}.parquet", buffer.getvalue())
        except OSError as error:
            raise self._unwritable(error) from error

    def sweeps(self) -> dict[str, Path]:
        """Files of rows by the name of their sweep."""
        files = sorted((self.folder / SWEEPS).glob("*.parquet"))
        return {file.stem: file for file in files if file.name[0] != "." and file.is_file()}

    def scratch(self) -> list[Path]:
        """What processes that were killed left behind."""
        places = (self.folder, self.folder / SWEEPS, *(self.folder / engine for engine in self.engines()))
        return [path for place in places for path in of_this_user(place, SCRATCH) if not _writer_lives(path.name)]

    def _scratch_prefix(self) -> str:
        return f"{SCRATCH}{socket.gethostname()}-{os.getpid()}-"

    def _write_whole(self, file: Path, content: bytes) -> None:
        beside = file.with_name(f"{SCRATCH}{socket.gethostname()}-{os.getpid()}-{file.name}")
        try:
            _write_file(beside, content, durable=True)
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)

    def _unwritable(self, error: OSError) -> OutputError:
        if isinstance(error, OutputError):
            return error
        why = (error.strerror or "unknown reason").lower()
        return OutputError(
            f"{shown(self.folder)}: the store cannot be written ({why}); what it holds is whole: make room or choose another with --store, and "
            "run the same command again"
        )


def default_folder() -> Path:
    """``$FANIN_STORE``, or ``fanin/store`` in the user's cache."""
    named = os.environ.get("FANIN_STORE")
    return Path(named) if named else cache_folder() / "store"


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_dir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _write_file(file: Path, content: bytes | memoryview, durable: bool) -> None:
    """Write a file and, where it is to be durable, wait until the disk has it: a rename must not outlive what it names."""
    with file.open("wb") as handle:
        handle.write(content)
        if durable:
            handle.flush()
            os.fsync(handle.fileno())


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _writer_lives(name: str) -> bool:
    """Whether the process that a scratch folder is named after may still write; on another machine it may."""
    host, _, rest = name.removeprefix(SCRATCH).rpartition("-")[0].rpartition("-")
    if host != socket.gethostname() or not rest.isdigit():
        return True
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
