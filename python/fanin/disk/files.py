"""Results on disk: whole or not at all, and names of files as text."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from fanin import _native
from fanin.disk.scratch import going, scratch_file, scratch_folder
from fanin.errors import OutputError, ScenarioError
from fanin.words.text import visible

if TYPE_CHECKING:
    import polars as pl


@contextmanager
def output_folder(folder: str | Path, option: str = "--out") -> Iterator[Path]:
    """Give a scratch folder whose files move into `folder` when the block ends well.

    A run that was killed leaves its scratch folder behind; the next one in the same folder removes it. Two runs at once into one folder
    would mix their files: the second is refused.

    The folder is proved writable at once, before hours are spent on what is to be written there. Files that are there under the
    same names are replaced one by one, each atomically; others are left alone. When the block raises, nothing is left behind.

    Raises
    ------
    OutputError
        When the folder cannot be made or written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with output_folder(Path(place) / "results") as scratch:
    ...         _ = (scratch / "table.csv").write_text("a,b")
    ...     sorted(p.name for p in (Path(place) / "results").iterdir())
    ['table.csv']
    """
    target = Path(folder)
    missing = _missing_parents(target)
    lock: int | None = None
    held = ExitStack()
    try:
        held.enter_context(going(missing))
        target.mkdir(parents=True, exist_ok=True)
        lock = _locked(target, option)
        scratch = held.enter_context(scratch_folder(target))
    except OutputError:
        held.close()
        raise
    except OSError as error:
        held.close()
        _remove_empty(missing)
        raise OutputError(f"{shown(target)}: {_why(error)}; choose another folder with {option}") from error
    except BaseException:
        # A signal, after the folder was made and before anything is written there.
        held.close()
        _remove_empty(missing)
        raise
    try:
        try:
            yield scratch
        except OutputError as error:
            # What was under way is named by where it would have gone.
            raise OutputError(str(error).replace(str(scratch), str(target))) from error
        except OSError as error:
            if error.filename is not None and not Path(error.filename).is_relative_to(scratch):
                raise
            raise OutputError(f"{shown(target)}: {_why(error)}; choose another folder with {option}") from error
        for source in sorted(p for p in scratch.rglob("*") if p.is_file()):
            destination = target / source.relative_to(scratch)
            try:
                destination.parent.mkdir(parents=True, exist_ok=True)
                source.replace(destination)
            except OSError as error:
                raise OutputError(
                    f"{shown(destination)}: {_why(error)}; choose another folder with {option}"
                ) from error
    finally:
        held.close()
        _remove_empty(missing)
        if lock is not None:
            _HELD.discard(os.fstat(lock).st_ino)
            os.close(lock)


_HELD: set[int] = set()
"""Folders (inodes) that this process writes to."""


def _locked(target: Path, option: str) -> int | None:
    """Take a folder for this process; None where it is ours already or cannot be locked.

    The system releases the lock of a process that ends, however it ends.
    """
    handle = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    inode = os.fstat(handle).st_ino
    if inode in _HELD:
        os.close(handle)
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise OutputError(
            f"{shown(target)}: another fanin is writing there; wait for it, or choose another folder with {option}"
        ) from None
    except OSError:
        os.close(handle)  # a file system without locks
        return None
    _HELD.add(inode)
    return handle


def shown(name: str | os.PathLike[str]) -> str:
    r"""A file's name, or a command line, as text that can be written anywhere, on one line: bytes that are no UTF-8 become the replacement character.

    Examples
    --------
    >>> shown("caf\udce9.pcap"), shown(Path("a") / "b"), shown("two\nlines")
    ('caf\ufffd.pcap', 'a/b', 'two\\nlines')
    """
    return visible(os.fspath(name).encode(errors="surrogateescape").decode(errors="replace"))


def file_name(name: str) -> str:
    """A name without what file systems and shells dislike."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "_", name)


def made_folder(folder: str | os.PathLike[str]) -> Path:
    """A folder that exists."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    return path


def read_text(path: Path) -> str:
    """Text of a scenario, a rack or a sweep. Ctrl-C ends the wait for a pipe that has no writer or is silent.

    Raises
    ------
    fanin.ScenarioError
        When there is too much of it.
    OSError, UnicodeDecodeError
        As of any file.
    """
    if threading.current_thread() is threading.main_thread():
        # Polars' handler has the system wait again.
        signal.siginterrupt(signal.SIGINT, True)
    with path.open(encoding="utf-8") as file:
        text = file.read(_native.MOST_TEXT + 1)
    if len(text) > _native.MOST_TEXT:
        raise ScenarioError(
            f"{shown(path)}: it is larger than {_native.MOST_TEXT // 1_000_000} MB, which no scenario is"
        )
    return text


ROWS = "fanin-rows-"
"""Of folders for rows that another process reads."""

ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
"""As :class:`fanin.process.limits.Apart` has it under a limit."""

_READS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
import polars as pl
folder, *files = sys.argv[1:]
for number, file in enumerate(files):
    pl.read_parquet(file).write_ipc(f"{folder}/{number}.arrow")
"""


def ordinary(file: Path) -> BinaryIO:
    """An ordinary file, open for reading. A pipe in its place would be waited for, and a device may have no end.

    Raises
    ------
    OSError
        When it is something else, too.
    """
    handle = open(os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")  # noqa: PTH123, SIM115
    if not stat.S_ISREG(os.fstat(handle.fileno()).st_mode):
        handle.close()
        raise OSError(errno.EINVAL, "it is no ordinary file", str(file))
    return handle


def read_parquet(*files: Path) -> list[pl.DataFrame]:
    """The rows of files that anybody may have made, read in a process of their own: Polars panics over some, and ends its process over others.

    Raises
    ------
    OSError
        As of any file.
    ValueError
        When they are no rows.
    """
    import polars as pl

    for file in files:
        ordinary(file).close()
    with scratch_folder(tempfile.gettempdir(), ROWS) as folder:
        # Without what lies in this folder: -P.
        words = [sys.executable, "-P", "-c", _READS, str(folder), *map(os.path.abspath, files)]
        if subprocess.run(words, capture_output=True, check=False, env=os.environ | ONE_ARENA).returncode:
            raise ValueError("no rows as Parquet")
        return [pl.read_ipc(folder / f"{number}.arrow") for number in range(len(files))]


@contextmanager
def output_file(
    file: str | Path, option: str = "--out", *, of: Sequence[str | os.PathLike[str] | None] = ()
) -> Iterator[Path]:
    """Give a scratch file that becomes `file` when the block ends well; until then, and when it raises, what was there is left alone.

    What a link leads to is replaced, and the link stays. A pipe or a device of characters takes the bytes.

    Parameters
    ----------
    of : sequence of path or None
        What the command reads, as far as it was given: it is not replaced by what is made of it.

    Raises
    ------
    OutputError
        When it cannot be written, or is one of these.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with output_file(Path(folder, "a.txt")) as scratch:
    ...         _ = scratch.write_text("whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    target = Path(os.path.realpath(file))
    try:
        found = _state(Path(file))
        reads = (_state(Path(read)) for read in of if read is not None)
        if found is not None and any(os.path.samestat(found, read) for read in reads if read is not None):
            raise OutputError(
                f"command line `{option} {shown(file)}`: the command reads this file; choose another place"
            )
        streams = found is not None and (_is_stream(found) or _of_system(Path(file)))
        if not streams:
            target.parent.mkdir(parents=True, exist_ok=True)
        with scratch_file(tempfile.gettempdir() if streams else target.parent, target.suffix) as scratch:
            yield scratch
            if streams:
                _pour(scratch, Path(file))
                return
            # As any other new file: the scratch file is its maker's alone.
            mask = os.umask(0)
            os.umask(mask)
            scratch.chmod(0o666 & ~mask)
            scratch.replace(target)
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(
            f"{shown(file)}: cannot be written ({_reason(error)}); choose another place with {option}"
        ) from error


def _state(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_stream(state: os.stat_result) -> bool:
    return stat.S_ISFIFO(state.st_mode) or stat.S_ISCHR(state.st_mode)


def _of_system(file: Path) -> bool:
    """It is one of the system's names for an open file, such as ``/dev/stdout``."""
    place = file.absolute()
    return (
        place.parts[1:2] == ("proc",) or str(place.parent) == "/dev/fd" or str(place) in {"/dev/stdout", "/dev/stderr"}
    )


def _pour(made: Path, stream: Path) -> None:
    """Write what was made into a pipe that is read, or a device."""
    handle = os.open(stream, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(handle, True)
    with open(handle, "wb") as opened, made.open("rb") as read:  # noqa: PTH123
        shutil.copyfileobj(read, opened)


def _reason(error: OSError) -> str:
    """Why, in lower case; a pipe that is not open for reading is "no such device or address" to the system."""
    return "nothing reads this pipe" if error.errno == errno.ENXIO else (error.strerror or "unknown reason").lower()


def write_text(text: str, file: str | Path, option: str, *, of: Sequence[str | os.PathLike[str] | None] = ()) -> None:
    """Write a text as :func:`output_file` does."""
    with output_file(file, option, of=of) as scratch:
        scratch.write_text(text, encoding="utf-8")


def write_new(text: str, file: Path) -> None:
    """Write a file that was not there, nor a link of its name; whatever ends the writing, no part of it is left.

    Raises
    ------
    FileExistsError
        When there is one.
    OSError
        As the system says it.
    """
    with file.open("x", encoding="utf-8") as made:
        try:
            made.write(text)
            made.flush()
        except BaseException:
            file.unlink(missing_ok=True)
            raise


def write_parquet(rows: pl.DataFrame, file: Path) -> None:
    """Write a frame; unlike Polars by itself, to a file of any name, and failing with an OSError."""
    import polars as pl

    with file.open("wb") as handle:
        try:
            rows.write_parquet(handle)
        except pl.exceptions.ComputeError as error:
            # Of what the system refused, as a file beyond the limit of sizes, Polars keeps the number alone.
            number = re.search(r"\(os error (\d+)\)", str(error))
            if number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(file)) from error


def _missing_parents(target: Path) -> list[Path]:
    """Folders that would be made for `target`, innermost first."""
    return [p for p in [target, *target.parents] if not os.path.lexists(p)]


def _remove_empty(folders: list[Path]) -> None:
    """Takes back what was made for nothing."""
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return


def _why(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "cannot hold results, since a file stands in the way"
    return f"cannot be written ({(error.strerror or 'unknown reason').lower()})"
