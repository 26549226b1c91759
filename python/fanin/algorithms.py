"""Congestion control written in Python: a class with the events of the engine's own algorithms.

>>> import fanin
>>> class Fixed(fanin.CongestionControl):
...     "Ten packets, whatever happens."
...
...     def on_ack(self, conn, ack):
...         self.cwnd = 10.0
...
...     def on_congestion(self, conn, cause):
...         pass
>>> fanin.register(Fixed)
'fixed'
>>> result = fanin.run("examples/dumbbell.toml", cc="fixed", settings={"run.duration": "1s"})
>>> result.flows["max_cwnd"].to_list()
[10.0, 10.0]

Every ACK of such a flow calls into Python, so a run takes two to three times as long as with the same algorithm in Rust.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from fanin._native import Ack, Conn, Setup

Cause = Literal["ecn", "loss", "timeout", "repeated timeout"]
"""Why to send less. A repeated timeout is one of a segment that has timed out before."""

PREFIX = "py:"
"""What the name of a class that is not registered begins with, as in ``py:module.Class``."""


class CongestionControl:
    """Base of congestion control in Python: one object per sender, told what happens, read after every event.

    A subclass implements :meth:`on_ack` and :meth:`on_congestion` and sets `cwnd`, `ssthresh` and `pacing`. It has no clock and no
    randomness: what it may know is in the event. An exception ends the run with that exception.

    Attributes
    ----------
    cwnd : float
        Congestion window in packets, at least 1; the sender uses its integer part.
    ssthresh : float
        Slow-start threshold in packets; infinite until known.
    pacing : float or None
        Rate to pace at in bit/s on the wire; None sends as ACKs allow.
    setup : fanin._native.Setup
        What is known before the first packet: ``mss`` and ``wire`` (bytes), ``initial_window`` (packets), ``rate`` (bit/s), ``base_rtt`` (s),
        ``buffer_packets``, ``profile``, ``parameters``.
    parameters : mapping
        Class attribute: settings with their defaults, numbers or flags. A scenario sets them beside ``cc.name``; the values in force are in
        ``setup.parameters``.
    needs : collection of str
        Class attribute, of ``dctcp_ecn`` (every mark is echoed), ``randomness`` (fills ``conn.uniform``), ``rate_samples`` (fills ``ack.rate``),
        ``byte_window`` (the window counts bytes), ``quickack`` (no delayed ACKs), ``handles_idle`` (no window validation by the stack),
        ``controls_recovery`` (the window is the algorithm's while losses are repaired, too).
    recovery : str or None
        Class attribute: ``reno``, ``newreno``, ``sack``, ``fack`` or ``rack``; None takes the stack's.
    """

    parameters: ClassVar[Mapping[str, float | bool]] = {}
    needs: ClassVar[Collection[str]] = ()
    recovery: ClassVar[str | None] = None

    cwnd: float
    ssthresh: float
    pacing: float | None

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.cwnd = setup.initial_window
        self.ssthresh = setup.initial_ssthresh
        self.pacing = None

    def on_ack(self, conn: Conn, ack: Ack) -> None:
        """New data was delivered; comes before `on_congestion` when one ACK does both."""
        raise NotImplementedError(f"{type(self).__name__} has no on_ack")

    def on_congestion(self, conn: Conn, cause: Cause) -> None:
        """Send less. ``ecn`` and ``loss`` come at most once per window of data."""
        raise NotImplementedError(f"{type(self).__name__} has no on_congestion")

    def on_recovered(self, conn: Conn, limit: float | None) -> None:
        """Loss recovery ended; cwnd should not exceed `limit` packets if one is given (RFC 6582 section 3.2). It is capped unless overridden."""
        if limit is not None:
            self.cwnd = max(1.0, min(self.cwnd, limit))

    def on_undo(self, conn: Conn) -> None:
        """The last reduction was a mistake. Nothing happens unless overridden."""

    def on_restart(self, conn: Conn, idle: float, cwnd: float, ssthresh: float) -> None:
        """Window validation asks for this window after `idle` seconds without sending. It gets it unless overridden."""
        self.cwnd, self.ssthresh = cwnd, ssthresh

    def before_send(self, conn: Conn, since_last: float | None) -> float | Literal["ack"] | None:
        """A new segment is about to leave, `since_last` seconds after the last: None lets it, ``"ack"`` waits for the next ACK, a time waits for that.

        Called only where overridden.
        """
        return None

    def segment_size(self, conn: Conn) -> int:
        """Payload bytes of the next new segment, at most ``conn.mss``. Called only where overridden."""
        return conn.mss

    def control(self) -> tuple[float, float, float | None]:
        """The decision in force: cwnd and ssthresh in packets, pacing in bit/s or None. Read after every event."""
        return self.cwnd, self.ssthresh, self.pacing


_registered: dict[str, type[CongestionControl]] = {}


def register(algorithm: type[CongestionControl], name: str | None = None) -> str:
    """Give a class a name for `cc` in runs, comparisons and scenarios of this process.

    Parameters
    ----------
    algorithm : type
        A subclass of :class:`CongestionControl`.
    name : str, optional
        The class's own name in small letters unless given. The same name may be given again, to a new version of the class.

    Returns
    -------
    str
        The name.

    Raises
    ------
    fanin.AlgorithmError
        When it is no such class, or the name cannot be used.

    Examples
    --------
    >>> class Mine(CongestionControl):
    ...     pass
    >>> register(Mine, "my-first")
    'my-first'
    >>> register(Mine, "newreno")
    Traceback (most recent call last):
    ...
    fanin.errors.AlgorithmError: the name `newreno` belongs to an algorithm of fanin; choose another
    """
    from fanin.errors import AlgorithmError
    from fanin.registries import entries

    if not (isinstance(algorithm, type) and issubclass(algorithm, CongestionControl)):
        raise AlgorithmError(f"{algorithm!r} is no subclass of fanin.CongestionControl")
    chosen = name or algorithm.__name__.lower()
    if any(entry.name == chosen for entry in entries("cc")):
        raise AlgorithmError(f"the name `{chosen}` belongs to an algorithm of fanin; choose another")
    if not chosen or any(c in "+," or c.isspace() for c in chosen):
        raise AlgorithmError(f"`{chosen}` cannot be a name: it must have neither `+` nor `,` nor spaces")
    _registered[chosen] = algorithm
    return chosen


def find(name: str) -> type[CongestionControl] | None:
    """The class of a name: one that was registered, or ``py:module.Class`` from a module in the current folder or anywhere on the path.

    Raises
    ------
    ImportError
        When the module cannot be imported or has no such class.
    """
    if name in _registered or not name.startswith(PREFIX):
        return _registered.get(name)
    module, _, attribute = name.removeprefix(PREFIX).rpartition(".")
    if not all(word.isidentifier() for word in (*module.split("."), attribute)):
        raise ImportError("a class is named by its module and itself, as in py:module.Class")
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(
            f"there is no module {module}: it is looked for in the current folder and where Python finds its own"
        ) from None
    finally:
        sys.path.remove(here)
    if not (isinstance(found, type) and issubclass(found, CongestionControl)):
        raise ImportError(f"module {module} has no class {attribute} that is a fanin.CongestionControl")
    _registered[name] = found
    return found


def version(algorithm: type[CongestionControl]) -> str:
    """A hash of the modules of a class and its bases, and of what these import beside them, so that results of one version are not taken for another's."""
    digest = hashlib.sha256()
    for base in algorithm.__mro__:
        if base in (CongestionControl, object):
            continue
        try:
            digest.update(inspect.getsource(base).encode())
        except (OSError, TypeError):
            # Made by a program, or typed into an interpreter: the code itself, as compiled.
            for key, value in sorted(vars(base).items()):
                code = getattr(value, "__code__", None)
                digest.update(
                    f"{key} {code.co_code.hex()} {code.co_consts}".encode() if code else f"{key} {value!r}".encode()
                )
        else:
            for file in sources(base):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@cache
def sources(cls: type) -> tuple[Path, ...]:
    """The file of a class's module and those of the modules beside it that it imports, directly or by another, in order of their names."""
    first = _file(cls.__module__)
    if first is None:
        return ()
    # A package's modules lie below the folder where the package is.
    own = cls.__module__.partition(".")[0]
    top = first.parents[cls.__module__.count(".") + (first.name == "__init__.py")]
    installed = [Path(sysconfig.get_path(kind)) for kind in ("stdlib", "purelib", "platlib")]
    found, left = {cls.__module__: first}, [cls.__module__]
    while left:
        for name in _imported(left.pop(), found):
            file = _file(name)
            if name in found or file is None or not file.is_relative_to(top):
                continue
            # What is installed has its own versions, and so has fanin.
            package = name.partition(".")[0]
            others = package != own and any(file.is_relative_to(place) for place in installed)
            if not others and package != "fanin":
                found[name] = file
                left.append(name)
    return tuple(found[name] for name in sorted(found))


def _imported(module: str, found: dict[str, Path]) -> Iterator[str]:
    """The names of modules that a module's file imports, as far as it says so in imports."""
    package = module if found[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(found[module].read_bytes())):
        if isinstance(node, ast.Import):
            for each in node.names:
                yield each.name
        elif isinstance(node, ast.ImportFrom):
            before = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*before, *([node.module] if node.module else [])])
            yield base
            for each in node.names:
                yield f"{base}.{each.name}"


def _file(module: str) -> Path | None:
    """The file that a module was read from."""
    file = getattr(sys.modules.get(module), "__file__", None)
    path = None if file is None else Path(file).absolute()
    return path if path is not None and path.suffix == ".py" and path.is_file() else None


def describe(error: BaseException) -> str:
    """What was raised and where, in one sentence."""
    text = "; ".join(str(error).split("\n")) or "no message"
    said = f"{type(error).__name__}: {text}"
    frames = traceback.extract_tb(error.__traceback__)
    # Not where fanin or Python's own import machinery passed the call on.
    ours = (Path(__file__).parent, Path(importlib.__file__).parent)
    own = [f for f in frames if Path(f.filename).parent not in ours and not f.filename.startswith("<frozen")]
    if not own:
        return said
    return f"{said} (in {own[-1].name}, {own[-1].filename}, line {own[-1].lineno})"
