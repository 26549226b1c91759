"""The `fanin` command: runs the Typer application and turns errors into one sentence and an exit code."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import signal
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from fanin.errors import FaninError, Interrupted, OutputError, nearest
from fanin.process.ending import listen
from fanin.process.limits import Apart, memory_limited, of_memory, refused, said_on, threads_wanted
from fanin.words.text import harmless, visible

if TYPE_CHECKING:
    import typer

WITHOUT_MEMORY = (
    "fanin: error: out of memory: this needs more than the machine, or its limit (ulimit -v), has; take a shorter capture, fewer algorithms or "
    "seeds, or a machine with more\n"
)
"""As the engine says it (crates/python/src/memory.rs)."""

NO_THREADS = "error: this needs {} threads, and the system lets this user start fewer; raise the limit (ulimit -u, or that of the container), and run again"

COMPLETING = "_FANIN_COMPLETE"
"""Set by the shell's completion when it asks what may come next."""

EXTRAS = {"distributed": "cluster", "duckdb": "sweep", "vl_convert": "docs"}
"""Modules that few commands need, and the extra of pyproject.toml that brings each."""

LONGEST = 4000
"""Characters of a sentence; a key of a scenario may have a million."""

APART = Apart()

DONE, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 2, 130, 141


def main() -> None:
    """Run the command.

    Exit codes: 0 done, 1 something asked for could not be run, 2 bad input or usage, 130 interrupted.
    """
    if not sys.warnoptions:
        # Libraries warn whoever calls them, in every version of others.
        warnings.simplefilter("ignore")
    code = _run()
    # A signal that comes now has nothing left to end; Python would let the one that `listen` keeps for later end the process.
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    APART.end()
    executor = sys.modules.get("fanin.runs.executor")
    if executor is not None and executor.STUCK.is_set():
        # A thread waits for what may never come, and Python would wait for the thread.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _run() -> int:
    try:
        answers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _terminated, signal.SIGHUP: _terminated}
        listen({number: answer for number, answer in answers.items() if _is_ours(number)})
        _need_streams()
        APART.begin()
        if (wanted := threads_wanted()) is not None:
            sys.stderr.write(f"fanin: {NO_THREADS.format(wanted)}\n")
            return BAD_INPUT
        if memory_limited():
            from fanin.process import hung

            hung.watch(_hung)
        # Polars' allocator gives pages back as soon as they are free; by itself it keeps what was once used. It reads this as it loads.
        os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0")
        # Here and not above: Ctrl-C while it loads is an interruption like any other.
        from fanin.commands.cli import app

        if COMPLETING not in os.environ:  # then the words are not in `sys.argv`
            _leave_unread(app, sys.argv[1:])
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, Interrupted):
        return _interrupted()
    except BaseException as error:
        # `fanin ... | head`: the reader has gone. Click makes an exit of its own of that.
        if isinstance(error.__context__ if isinstance(error, SystemExit) else error, BrokenPipeError):
            _give_up_output()
            return PIPE_CLOSED
        if type(error).__name__ == "Abort":
            return _interrupted()
        said = _sentence(error)
        if said is None and of_memory(error):
            return _without_memory()
        if said is None:
            raise
        if said:
            # Standard error may be full or closed: the exit code says it all the same.
            with contextlib.suppress(OSError):
                sys.stderr.write(f"fanin: {said}\n")
        return BAD_INPUT
    # A command that Ctrl-C ended early says itself what it kept and leaves by SystemExit: what comes here was interrupted before.
    if code == INTERRUPTED:
        return _interrupted()
    return code if isinstance(code, int) else DONE


def _sentence(error: BaseException) -> str | None:
    """What is said of an error, empty where all is said; None: memory that is missing, or a mistake of fanin's, whose traceback is wanted."""
    if _is_adrift(error):
        return "error: the folder that this runs in was removed, so there is nothing beside it; change to another (cd), and run again"
    if isinstance(error, FaninError) and refused(error) is None:
        # Only the excerpt of a file has lines.
        if error.with_source is not None and sys.stderr.isatty():
            return _short(harmless(error.with_source))
        return _short(f"error: {visible(str(error))}")
    if isinstance(error, ModuleNotFoundError):
        extra = EXTRAS.get(str(error.name))
        needs = f"error: this needs {error.name}, which is not installed: pip install 'fanin[{extra}]'"
        return None if extra is None else needs
    if isinstance(error, OSError) and error.errno not in {errno.EMFILE, errno.ENFILE}:
        # Files are written by functions that name them: what is left is the output itself, such as a full disk behind `>`.
        _give_up_output()
        where = "standard output" if error.filename is None else visible(str(error.filename))
        why = (error.strerror or "unknown reason").lower()
        return f"error: {where}: cannot be used ({why}); make room or choose another place"
    # Typer's own words about the command line; their class is not public in every version.
    message = getattr(error, "format_message", None)
    if message is not None:
        text = visible(" ".join(message().split()).rstrip(".").replace("Value error, ", ""))
        return _short(f"error: command line: {text[0].lower()}{text[1:]}{_nearest(text)}; see --help") if text else ""
    if of_memory(error):
        return None
    if isinstance(error, UnicodeEncodeError):
        # Python stands surrogates for the bytes of a word that are no text; what is no path is text.
        spoilt = [word for word in sys.argv[1:] if any("\udc80" <= letter <= "\udcff" for letter in word)]
        if spoilt:
            return _short(
                f"error: command line: `{visible(spoilt[0])}` is no text (UTF-8); only names of files may have such bytes"
            )
    if isinstance(error, Exception) and _is_stale(error):
        return f"error: the compiled module is of another version than the Python around it ({error}); run `make build`, or install fanin anew"
    reason = refused(error)
    if reason is None:
        return None
    APART.forget()
    return f"error: the system refused what was asked of it ({reason}); raise the limit (ulimit -a), and run again"


def _is_adrift(error: BaseException) -> bool:
    """A file was not found since the current folder is no more."""
    about = error.__context__ if isinstance(error, FaninError) else error
    is_missing = os.strerror(errno.ENOENT).lower() in str(error).lower()
    if not is_missing or os.path.isabs(getattr(about, "filename", None) or ""):  # noqa: PTH117
        return False
    try:
        os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return True
    return False


def _short(said: str) -> str:
    """A sentence that may name what is in a file has an end."""
    return said if len(said) <= LONGEST else f"{said[: LONGEST // 2]} ... {said[-LONGEST // 2 :]}"


def _without_memory() -> int:
    _give_up_output()
    native = sys.modules.get("fanin._native")
    if native is None:
        sys.stderr.write(WITHOUT_MEMORY)
    else:
        # Threads that still run meet the same; one of all says it.
        native.say_without_memory(said_on())
    APART.forget()
    if native is not None:
        native.end_without_memory(said_on())
        # Not imported here: what was not loaded has made nothing.
        scratch = sys.modules.get("fanin.disk.scratch")
        if scratch is not None and scratch.is_left():
            native.clean_and_end()
    return BAD_INPUT


def _leave_unread(app: typer.Typer, words: list[str]) -> None:
    """Take the options of commands that are not on the command line for none: reading them all is a third of the time of `fanin --help`."""
    for command in app.registered_commands:
        callback = command.callback
        if callback is not None and (command.name or callback.__name__.replace("_", "-")) not in words:
            command.name = command.name or callback.__name__.replace("_", "-")

            def unread() -> None:
                """Nothing."""

            unread.__doc__ = callback.__doc__
            command.callback = unread
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _leave_unread(group.typer_instance, words)


def _nearest(text: str) -> str:
    """What was probably meant by a choice that does not exist; Typer says it of commands."""
    wrong = re.search(r": '([^']*)' is not one of (.*)", text)
    if wrong is not None and "--rank-by" in text and wrong[1] in {"trees", "rounds", "responses"}:
        return f"; did you mean `--rank-of {wrong[1]}`?"
    near = nearest(wrong[1], re.findall(r"'([^']*)'", wrong[2])) if wrong is not None else None
    return f"; did you mean `{near}`?" if near is not None else ""


def _is_stale(error: Exception) -> bool:
    """The compiled module lacks what the Python around it asks it for: it was built from other sources."""
    if isinstance(error, ImportError):
        return error.name == "fanin._native"
    native = sys.modules.get("fanin._native")
    if native is None:
        return False
    if isinstance(error, KeyError):
        # A dictionary of the module's without what is expected in it; only a source tree can have that, and tells it by its times.
        return _is_older(Path(str(native.__file__)), Path(__file__).parents[2] / "crates")
    if not isinstance(error, AttributeError | TypeError):
        return False
    if isinstance(error, AttributeError):
        return error.obj is native or any(one in vars(native).values() for one in (type(error.obj), error.obj))
    # What is called with other arguments than it takes: `Rack.check() missing 1 required positional argument`.
    called = re.match(r"(\w+)(?:\.\w+)?\(\)", str(error))
    return called is not None and hasattr(native, called[1])


def _is_older(module: Path, sources: Path) -> bool:
    built = module.stat().st_mtime
    return any(file.stat().st_mtime > built for file in sources.rglob("*.rs"))


def _need_streams() -> None:
    """`>&-` leaves no stream at all: without standard error nothing can be said, without standard output nothing can be answered."""
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        sys.stdout = io.StringIO()
        raise OutputError("standard output: it is closed; send it somewhere, as in > results.txt")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # In a locale without them, a question mark stands for an arrow; the table is no less true.
        sys.stdout.reconfigure(errors="replace")


def _is_ours(number: int) -> bool:
    """Python answers this signal, or the package did while it loaded.

    Not ours is what is ignored, as Ctrl-C in the background of a shell and a hangup under nohup, or what a program that calls `main` answers.
    """
    now = signal.getsignal(number)
    return now in (signal.SIG_DFL, signal.default_int_handler) or getattr(now, "__module__", "") == "fanin"


def _terminated(number: int, where: FrameType | None) -> None:
    """An end like any other: what is half written is taken back on the way out."""
    sys.exit(128 + number)


def _interrupted() -> int:
    # Not imported here: what was not loaded has kept nothing.
    store = sys.modules.get("fanin.runs.store")
    kept = store.KEPT.runs if store is not None else 0
    what = (
        f"{kept} {'run is' if kept == 1 else 'runs are'} in the store, and the same command goes on"
        if kept
        else "nothing was written"
    )
    if not _TOLD:
        _TOLD.append(what)
        sys.stderr.write(f"fanin: interrupted, {what}\n")
    return INTERRUPTED


_TOLD: list[str] = []
"""What was said of an interruption."""


def _hung() -> None:
    """Ctrl-C does not get through a library."""
    code = _interrupted()
    scratch = sys.modules.get("fanin.disk.scratch")
    if scratch is not None:
        scratch.remove_all()
    os._exit(code)


def _give_up_output() -> None:
    """Python would try once more when it flushes on exit, and complain."""
    number = sys.stdout.fileno()
    # Closed first: a handle may be what is missing (ulimit -n).
    os.close(number)
    nothing = os.open(os.devnull, os.O_WRONLY)
    if nothing != number:
        os.dup2(nothing, number)
        os.close(nothing)


if __name__ == "__main__":
    main()
