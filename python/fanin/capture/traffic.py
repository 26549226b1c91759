"""What a capture holds: connections, packet trains, requests and responses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import polars as pl

from fanin.capture.fitness import Fitness
from fanin.disk.cache import cache_folder
from fanin.disk.files import made_folder, shown, write_parquet
from fanin.errors import keywords
from fanin.process.progress import Progress, may_be_left, silent
from fanin.runs.executor import watched
from fanin.statistics.frames import frame

if TYPE_CHECKING:
    from fanin._native import Capture, Rack, Replay, Watch

NS_PER_MS = 1e6

MANY_ROWS = 100_000
"""Rows of a table that are not kept beside the capture's own: of a million connections they take 0.3 GB."""

QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
"""Shares at which distributions are told."""


@dataclass(frozen=True, slots=True)
class QueueLimit:
    """What losses say of a queue's limit.

    Attributes
    ----------
    losses, epochs : int
        Packets that were dropped, and the stretches in which they were; where there are fewer than four, only `longest` is told.
    packets : int
        The limit that explains best what was dropped and what was not, in packets.
    amiss : float
        By what share of it the queue had to be corrected at each stretch.
    found : tuple of int
        The queue that the first dropped packet of each stretch found: one tenth of them at most, half of them, nine tenths.
    longest : int
        The longest queue that took a packet.
    """

    losses: int
    epochs: int
    packets: int
    amiss: float
    found: tuple[int, int, int]
    longest: int


@dataclass(frozen=True, slots=True)
class Queued:
    """How long first packets of answers waited before the tap, by their senders' time stamps (RFC 7323).

    Attributes
    ----------
    answers : int
        Answers whose time stamps tell.
    p95_ns, p99_ns : int
        One in twenty, and one in a hundred, waited at least so long.
    """

    answers: int
    p95_ns: int
    p99_ns: int


@dataclass(slots=True)
class TrainsResult:
    """What was found in one capture.

    Attributes
    ----------
    summary : dict
        Counts over the file: ``file``, ``format``, ``packets``, ``tcp_packets``, ``connections``, ``payload_bytes``,
        ``start_epoch_ns``, ``duration_ns``.
    fitness : Fitness
        Whether the capture is fit to judge by: measured before anything was inferred.
    connections : sequence of dict
        One per TCP connection, made when it is asked for, numbered as tshark's ``tcp.stream``: addresses, ports, and per direction (``to_server``,
        ``to_client``) ``packets``, ``payload_bytes``, ``retransmitted_bytes`` and more (docs/json/trains.schema.json has them all).
    trains : polars.DataFrame
        One row per packet train. Columns: ``connection`` (UInt32), ``direction`` (String: to_server or to_client), ``start_ms``, ``end_ms``
        (Float64, from the first packet of the capture), ``packets``, ``bytes`` (UInt64, each byte once), ``retransmitted_bytes``
        (UInt64), ``gap_before_ms`` (Float64, null for the first of its direction), ``threshold_ms`` (Float64), ``turn``, ``turns`` (UInt32).
    turns : polars.DataFrame
        One row per request and its response: ``connection``, ``turn`` (UInt32), ``request_start_ms``, ``request_end_ms`` (Float64),
        ``request_bytes`` (UInt64), ``response_start_ms``, ``response_end_ms`` (Float64), ``response_bytes``, ``missing_bytes``,
        ``retransmitted_bytes`` (UInt64), ``think_ms``, ``service_ms`` (Float64).
    hosts : list of dict
        The likeliest aggregator first: ``ip``, ``received_bytes``, ``sent_bytes``, ``senders``, ``connections``.
    warnings : list of dict
        What a reader of the numbers should know: ``kind``, ``message``.
    partial : dict or None
        Set when the file is damaged and only its front was read: ``packets``, ``at_byte``, ``message``.
    links : list of dict
        What the spacing of packets says about the link to each receiver: ``receiver``, ``samples``, ``rate_bps``, ``share``,
        ``quartiles_bps``, ``rhythm_ns``, ``after_burst_ns``, ``busiest_bps``, ``merged_packets``, and of trains of single connections
        ``sender_samples``, ``sender_rate_bps``, ``sender_share``; of full packets of two senders ``pairs``; ``offload``, ``ticks``; see
        :func:`fanin.propose_rack`.
    gap : str
        What ended a train.
    command : str
        The command that does the same.
    version : str
        Version of fanin.
    """

    summary: dict[str, Any]
    fitness: Fitness
    connections: Sequence[dict[str, Any]]
    hosts: list[dict[str, Any]]
    warnings: list[dict[str, Any]]
    partial: dict[str, Any] | None
    links: list[dict[str, Any]]
    gap: str
    command: str
    version: str
    _capture: Capture = field(repr=False)
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict, repr=False)
    _drawn: dict[tuple[str | None, int], list[list[tuple[float, float]]]] = field(default_factory=dict, repr=False)

    @property
    def trains(self) -> pl.DataFrame:
        """One row per packet train."""
        return self._frame("trains")

    @property
    def turns(self) -> pl.DataFrame:
        """One row per request and its response."""
        return self._frame("turns")

    def _frame(self, name: Literal["trains", "turns"]) -> pl.DataFrame:
        """One of the capture's tables, times in ms; a large one is made whenever it is asked for, since the capture itself has it already."""
        if name in self._frames:
            return self._frames[name]
        columns = frame(self._capture.trains() if name == "trains" else self._capture.turns())
        made = columns.select(
            (pl.col(c) / NS_PER_MS).alias(c.removesuffix("_ns") + "_ms") if c.endswith("_ns") else pl.col(c)
            for c in columns.columns
        )
        if made.height < MANY_ROWS:
            self._frames[name] = made
        return made

    def __repr__(self) -> str:
        s = self.summary
        return f"<TrainsResult of {s['file']}: {s['connections']} connections, {self.trains.height} packet trains>"

    def _repr_html_(self) -> str:
        """For notebooks: the connections."""
        from fanin.pictures.notebook import card

        rows = [
            (
                c["connection"],
                c["client_ip"],
                c["server_ip"],
                c["turns"],
                c["to_server"]["unique_bytes"],
                c["to_client"]["unique_bytes"],
            )
            for c in self.connections
        ]
        return card(
            repr(self).strip("<>"), ["connection", "client", "server", "turns", "bytes asked", "bytes answered"], rows
        )

    def to_dict(self, replay: Replay | None = None) -> dict[str, Any]:
        """The object that ``fanin trains --json`` prints (schema: docs/json/trains.schema.json).

        Parameters
        ----------
        replay : Replay, optional
            The requests that it tells, as :meth:`workload` returns them [default: those of the likeliest aggregator].
        """
        from fanin.capture import closing, waiting

        if replay is None:
            replay = self._asked()
        doubts = {} if replay is None else closing.doubts(replay)
        return {
            "version": self.version,
            "command": self.command,
            "capture": self.summary,
            "fitness": self.fitness.to_dict(),
            "gap": self.gap,
            "connections": list(self.connections),
            "trains": self.trains.to_dicts(),
            "distributions": self.distributions(),
            "hosts": self.hosts,
            "groups": [] if replay is None else waiting.groups(replay),
            "warnings": [*self.warnings, *({"kind": kind, "message": message} for kind, message in doubts.items())],
            "partial": self.partial,
        }

    def distributions(self) -> dict[str, Any]:
        """Quantiles of train sizes and gaps per direction.

        Returns
        -------
        dict
            Per direction (``to_server``, ``to_client``) the number of ``trains`` and, for ``bytes``, ``packets`` and ``gap_before_ms``, an
            object with ``mean`` and the quantiles ``p0`` to ``p100``; null where there is no train.
        """
        import polars as pl

        def told(values: pl.Series) -> dict[str, float | None]:
            known = values.drop_nulls()
            mean = known.cast(pl.Float64).mean()
            quantiles = {f"p{q * 100:g}": known.cast(pl.Float64).quantile(q, "nearest") for q in QUANTILES}
            return {"mean": mean, **quantiles}  # type: ignore[dict-item]

        result: dict[str, Any] = {}
        trains = self.trains
        for direction in ("to_server", "to_client"):
            mine = trains.filter(pl.col("direction") == direction)
            result[direction] = {
                "trains": mine.height,
                **{column: told(mine[column]) for column in ("bytes", "packets", "gap_before_ms")},
            }
        return result

    def groups(self, aggregator: str | None = None) -> list[dict[str, Any]]:
        """Who is asked together by the aggregator, and what its requests wait for, as :func:`fanin.capture.waiting.groups`; empty where nothing was asked.

        :func:`fanin.capture.waiting.sentences` says it in words.
        """
        from fanin.capture import waiting

        replay = self._asked(aggregator)
        return [] if replay is None else waiting.groups(replay)

    def _asked(self, aggregator: str | None = None) -> Replay | None:
        """The traffic towards one host, as :meth:`workload`; None where no host received anything."""
        return self.workload(aggregator) if any(host["received_bytes"] for host in self.hosts) else None

    def requests(self, aggregator: str | None = None) -> pl.DataFrame:
        """What each request of the application's user caused at the aggregator, a row each, in order of time.

        Columns are ``request`` (UInt32, from 0), ``group`` (UInt32, position in :meth:`groups`), ``start_ms`` (Float64, from the start of the
        capture), ``completion_ms`` (Float64, from its first message, or the opening of the connection for it, to the last answer that is waited for; null
        where that is missing), ``responses`` and ``servers``
        (UInt32) and ``bytes`` (UInt64, of its answers). Empty where each connection goes its own way.

        Raises
        ------
        fanin.CaptureError
            When no such host received payload.

        Examples
        --------
        >>> import fanin
        >>> found = fanin.trains("tests/data/requests/chain.pcap.gz").requests()
        >>> found.height, found["responses"].unique().to_list()
        (46, [4])
        """
        return (
            frame(self.workload(aggregator).request_messages())
            .group_by("request", maintain_order=True)
            .agg(
                pl.col("group").first(),
                start_ms=pl.col("begin_ns").first() / NS_PER_MS,
                completion_ms=pl.col("took_ns").first() / NS_PER_MS,
                responses=pl.col("response_bytes").gt(0).sum().cast(pl.UInt32),
                servers=pl.col("server").n_unique().cast(pl.UInt32),
                bytes=pl.col("response_bytes").sum(),
            )
        )

    def rounds(self, aggregator: str | None = None) -> list[list[tuple[int, int]]]:
        """Rounds of requests to several servers, in order of time: the (connection, turn) of each answer, as in `turns`.

        Of an aggregator that asks; where it is asked itself, the numbers of its turns are others, and there are none here.
        """
        parts = self._round_answers(aggregator).partition_by("round", maintain_order=True)
        return [list(zip(part["connection"], part["turn"], strict=True)) for part in parts]

    def _round_answers(self, aggregator: str | None, replay: Replay | None = None) -> pl.DataFrame:
        """The answers of each round: ``round``, in order of time, ``connection`` and ``turn`` (UInt32)."""
        from fanin.capture import waiting

        replay = replay or self.workload(aggregator)
        answers = frame(replay.round_answers())
        return answers if waiting.groups(replay) else answers.clear()

    def round_times(
        self, aggregator: str | None = None, *, most: int, replay: Replay | None = None
    ) -> list[list[tuple[float, float]]]:
        """The first `most` rounds: per answer when it was asked for and when it had arrived, in ms since the round's first request.

        They are found once: of a million connections the `replay`, which is :meth:`workload` where that is at hand, takes 0.4 GB.
        """
        if (aggregator, most) not in self._drawn:
            members = self._round_answers(aggregator, replay).filter(pl.col("round") < most)
            first = pl.col("request_start_ms").min().over("round")
            rows = (
                members.join(self.turns, on=["connection", "turn"], how="inner", maintain_order="left")
                .drop_nulls(["request_start_ms", "response_end_ms"])
                .select("round", asked=pl.col("request_start_ms") - first, answered=pl.col("response_end_ms") - first)
            )
            parts = rows.partition_by("round", maintain_order=True)
            self._drawn[aggregator, most] = [list(zip(r["asked"], r["answered"], strict=True)) for r in parts]
        return self._drawn[aggregator, most]

    def heaviest(self, most: int) -> list[dict[str, Any]]:
        """The connections with the most payload, in the order of their numbers."""
        return list(json.loads(self._capture.heaviest_json(most)))

    def towards(self, host: str) -> pl.DataFrame:
        """What went towards a host, a row for each of its connections: what its senders were seen to do.

        ``connection`` (UInt32), ``asks`` and ``handshake_seen`` (Boolean; the host opened it, so responses go to it), ``handshake_rtt_ns``,
        ``min_rtt_ns`` and counts (UInt64) as in `connections`; ``repeated_syns`` are of both sides, ``repaired_packets`` what was sent again,
        ``spurious_packets`` of that what its receiver had, and ``overtaken_packets`` of these what the network had delivered behind later packets.
        ``ece_packets`` are of both sides; ``mss_of_client`` and ``mss_of_server`` zero where none was announced, and ``both_sack``, ``both_stamp`` and
        ``both_scale`` 1 where both ends offered the option.
        """
        return frame(self._capture.towards(host)).with_columns(pl.col("asks", "handshake_seen") == 1)

    def workload(self, aggregator: str | None = None) -> Replay:
        """The traffic towards one host, ready to be replayed.

        Parameters
        ----------
        aggregator : str, optional
            Address of the host that the responses go to; the likeliest unless given.

        Raises
        ------
        fanin.CaptureError
            When no such host received payload.
        """

        def work(_: Watch) -> Replay:
            with may_be_left():
                return self._capture.workload(aggregator)

        # On a thread, which Ctrl-C ends: of many connections it takes long.
        with silent("", 1) as bar:
            return watched(work, bar)

    def behind_the_queue(self, aggregator: str) -> bool | None:
        """Whether the tap is between the queue and the host that the responses go to; None where the capture does not show it.

        A packet that was lost before the tap is seen once, when it fills the hole; one lost behind it is seen twice. One that was only late is
        seen twice too: where its acknowledgement has passed before, it was held up before the tap. Without any of these the handshake
        tells: its part between the tap and a host is hardly longer than that host's own time when the tap is on it.
        """
        return self._capture.behind_the_queue(aggregator)

    def queue_limit(self, receiver: str, bps: float) -> QueueLimit | None:
        """What was dropped and what was not say of the limit of the queue to a host whose link has this rate.

        Only for a tap before the queue (:meth:`behind_the_queue`). None where no payload went to the host.
        """
        told = json.loads(self._capture.limit_json(receiver, bps))
        return None if told is None else QueueLimit(**{**told, "found": tuple(told["found"])})

    def queued_before(self, receiver: str) -> Queued | None:
        """How long answers to a host waited in queues before the tap; None where too few time stamps tell."""
        told = json.loads(self._capture.queued_json(receiver))
        return None if told is None else Queued(**told)

    def write_files(
        self,
        folder: str | Path,
        *,
        aggregator: str | None = None,
        replay: Replay | None = None,
        request: int | None = None,
        traced: Mapping[tuple[int, int], tuple[int, int]] | None = None,
    ) -> None:
        """Write tables, plots and the workload to a folder, which is made if it is missing.

        They are ``trains.json``, ``trains.parquet``, ``turns.parquet``, ``workload.json``, ``trains.html`` and ``trains.svg``; where there are requests of
        several messages, also ``requests.html`` (each as a waterfall), ``requests.parquet``, ``rounds.html`` and ``rounds.svg``.

        Parameters
        ----------
        folder : path
            Where to.
        aggregator : str, optional
            As :meth:`workload` takes it.
        replay : Replay, optional
            The traffic, where its requests are those of traces (:func:`fanin.spans.fit`).
        request : int, optional
            The number of the request that the page of requests draws first where its reader chooses; the slowest unless given.
        traced : mapping, optional
            Calls of traces, drawn beside the messages: :attr:`fanin.spans.Fitted.placed`.

        Raises
        ------
        fanin.CaptureError
            When there is no request of that number.
        """
        from fanin.capture import waiting
        from fanin.errors import CaptureError
        from fanin.pictures.files import can_render, write
        from fanin.pictures.plots import round_plot, train_plots

        folder, trains, turns = made_folder(folder), self.trains, self.turns

        folder.joinpath("trains.json").write_text(json.dumps(self.to_dict(), allow_nan=False) + "\n")
        write_parquet(trains, folder / "trains.parquet")
        write_parquet(turns, folder / "turns.parquet")
        try:
            replay = replay or self.workload(aggregator)
            folder.joinpath("workload.json").write_text(replay.to_json() + "\n")
            self._write_requests(folder, replay, request, traced)
        except CaptureError:
            # Connections that carried nothing (handshakes) have trains of none and no workload; an aggregator asked for is an error.
            if aggregator is not None or trains.height:
                raise
        pictures = {
            "rounds": round_plot(turns, self.rounds(aggregator), title=waiting.sentences(self.groups(aggregator))[0]),
            "trains": train_plots(trains, title=Path(self.summary["file"]).name),
        }
        for name, chart in pictures.items():
            if chart is not None:
                write(chart, folder / f"{name}.html")
                if can_render():
                    write(chart, folder / f"{name}.svg")

    def _write_requests(
        self,
        folder: Path,
        replay: Replay,
        request: int | None,
        traced: Mapping[tuple[int, int], tuple[int, int]] | None,
    ) -> None:
        from fanin import waterfall
        from fanin.errors import CaptureError

        each = waterfall.requests(waterfall.messages(replay))
        if request is not None and request not in each["request"]:
            there = f"0 to {each.height - 1}" if each.height else "none"
            raise CaptureError(f"command line `--request {request}`: there is no such request; the capture has {there}")
        page = waterfall.page(self, replay, chosen=request, traced=traced)
        if page is not None:
            folder.joinpath("requests.html").write_text(page, encoding="utf-8")
            write_parquet(each, folder / "requests.parquet")


def _rack(file: str | Path) -> Rack:
    from fanin import _native
    from fanin.runs.job import Document

    document = Document.of_rack(file)
    return _native.Rack.from_text(document.text, document.name, document.folder)


class Connections(Sequence[dict[str, Any]]):
    """The connections of a capture as dicts, made a page at a time: a million of them would be gigabytes.

    Parameters
    ----------
    capture : Capture
        Where they are kept.
    """

    PAGE = 1024

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._count = int(json.loads(capture.summary_json())["connections"])
        self._begin, self._page = 0, list[dict[str, Any]]()

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._count} connections>"

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(self._count))]
        number = range(self._count)[index]
        begin = number - number % self.PAGE
        if begin != self._begin or not self._page:
            self._page = json.loads(self._capture.connections_json(begin, begin + self.PAGE))
            self._begin = begin
        return self._page[number - begin]


@keywords
def trains(
    capture: str | Path,
    *,
    gap: str | None = None,
    floor: str | None = None,
    rack: str | Path | Rack | None = None,
    command: str | None = None,
    progress: Callable[[str, int], Progress] = silent,
) -> TrainsResult:
    """Read a capture and find its packet trains.

    A gap between two data packets of one direction above a threshold begins a new train (Jain and Routhier 1986).

    Parameters
    ----------
    capture : path
        pcap or pcapng, plain or gzip; ``"-"`` is standard input.
    gap : str, optional
        The threshold, such as ``"1ms"``. Without it the smoothed round trip of each connection, as TCP-TRIM takes it.
    floor : str, optional
        The least threshold when the smoothed round trip is it; 300 us unless given.
    rack : path, optional
        The rack that the capture was taken on (a rack file). The rates of its links say how much of the wait for an answer was the network's; without
        it the fastest that the capture shows counts, and 1 Gbps where it shows too little.
    command : str, optional
        What to state as the command that does the same.
    progress : callable, optional
        Makes the progress display; see :mod:`fanin.process.progress`.

    Returns
    -------
    TrainsResult

    Raises
    ------
    fanin.CaptureError
        When the file cannot be read or holds no TCP.
    fanin.ScenarioError
        When `gap` or `floor` is no time, or both are given, or `rack` is no rack.

    Examples
    --------
    >>> import fanin
    >>> found = fanin.trains("data/captures/http_onoff_8to1.pcap.gz", gap="1ms")
    >>> found.summary["connections"], found.summary["packets"]
    (8, 73483)
    >>> found.connections[0]["to_client"]["retransmitted_bytes"] > 0
    True
    >>> found.trains.columns[:4]
    ['connection', 'direction', 'start_ms', 'end_ms']
    """
    from fanin import _native

    place = None
    with suppress(RuntimeError):  # a user without a home
        place = cache_folder()
    # Standard input has a name that any program can open.
    path = Path("/dev/stdin") if str(capture) == "-" else Path(capture)
    known = rack if isinstance(rack, _native.Rack) or rack is None else _rack(rack)

    def read(watch: Watch) -> Capture:
        with may_be_left():
            return _native.analyse(path, gap, floor, known, watch, place)

    with progress(f"reading {shown(path.name)}", 1) as bar:
        found = watched(read, bar)

    return TrainsResult(
        summary=json.loads(found.summary_json()) | ({"file": "standard input"} if str(capture) == "-" else {}),
        fitness=Fitness.of(json.loads(found.fitness_json())),
        connections=Connections(found),
        hosts=json.loads(found.hosts_json()),
        warnings=json.loads(found.warnings_json()),
        partial=json.loads(found.partial_json()),
        links=json.loads(found.links_json()),
        gap=found.gap,
        command=shown(
            command
            or f"fanin trains {path}"
            + (f" --gap {gap}" if gap else "")
            + (f" --floor {floor}" if floor else "")
            + (f" --rack {rack}" if isinstance(rack, (str, Path)) else "")
        ),
        version=_native.VERSION,
        _capture=found,
    )
