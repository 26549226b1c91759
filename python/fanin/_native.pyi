"""The engine: conversions and error mapping over the Rust crates. Use the functions of `fanin` instead where there is one."""

from collections.abc import Sequence
from os import PathLike
from typing import final

__all__ = [
    "MOST_TEXT",
    "SLOWEST",
    "TRACED_ROWS",
    "VERSION",
    "Ack",
    "Capture",
    "Conn",
    "Deployment",
    "Lines",
    "Plan",
    "Rack",
    "RackPlan",
    "Replay",
    "Replayed",
    "Run",
    "Scenario",
    "Setup",
    "Table",
    "Watch",
    "admit_code",
    "analyse",
    "c_places",
    "clean_and_end",
    "clean_without_memory",
    "compile_c",
    "confine",
    "dctcp",
    "deployment",
    "describe_code",
    "end_with_parent",
    "end_without_memory",
    "give_back",
    "graph_json",
    "gss_incast",
    "iatcp",
    "kernel_check",
    "kernel_check_places",
    "kernel_limit",
    "kernel_prepare",
    "kernel_replay",
    "kernel_results",
    "limit",
    "mapped",
    "name_c_file",
    "named_c_files",
    "needs_ecn",
    "needs_quickack",
    "quantity",
    "rand_enqueue",
    "rand_rmin",
    "registry_json",
    "results_schema_json",
    "run_with_pcap",
    "say_without_memory",
    "trim_as",
    "trim_k",
]

MOST_TEXT: int
SLOWEST: int
TRACED_ROWS: int
VERSION: str

@final
class Table:
    """Named columns of equal length, for any consumer of Arrow's PyCapsule interface."""

    @property
    def columns(self) -> list[str]: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __len__(self) -> int: ...

@final
class Watch:
    """Share of the work done, and a way to stop it."""

    def __new__(cls) -> Watch: ...
    @property
    def fraction(self) -> float: ...
    def advance(self, fraction: float) -> bool: ...
    def stop(self) -> None: ...

@final
class Capture:
    """What was found in one capture."""

    @property
    def gap(self) -> str: ...
    def summary_json(self) -> str: ...
    def connections_json(self, begin: int, end: int) -> str: ...
    def heaviest_json(self, most: int) -> str: ...
    def towards(self, host: str) -> Table: ...
    def hosts_json(self) -> str: ...
    def links_json(self) -> str: ...
    def limit_json(self, receiver: str, bps: float) -> str: ...
    def queued_json(self, receiver: str) -> str: ...
    def fitness_json(self) -> str: ...
    def warnings_json(self) -> str: ...
    def partial_json(self) -> str: ...
    def trains(self) -> Table: ...
    def turns(self) -> Table: ...
    def workload(self, aggregator: str | None = None) -> Replay: ...
    def behind_the_queue(self, aggregator: str) -> bool | None: ...

@final
class Replay:
    """Traffic to be replayed."""

    @staticmethod
    def from_json(text: str) -> Replay: ...
    @property
    def connections(self) -> int: ...
    @property
    def aggregator(self) -> str: ...
    @property
    def servers(self) -> list[str]: ...
    @property
    def responses(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def in_rounds(self) -> int: ...
    def round_times_ms(self) -> list[float | None]: ...
    @property
    def stages(self) -> int: ...
    def stage_times_ms(self) -> list[float | None]: ...
    def request_messages(self) -> Table: ...
    def round_answers(self) -> Table: ...
    def closings_json(self) -> str: ...
    @property
    def in_trees(self) -> int: ...
    def trees(self) -> Table: ...
    def pauses(self) -> Table: ...
    def groups_json(self) -> str: ...
    @property
    def untold(self) -> int: ...
    @property
    def unasked(self) -> int: ...
    @property
    def merged(self) -> int: ...
    def independent(self) -> Replay: ...
    def otherwise(self) -> Replay | None: ...
    def unwaiting(self) -> Replay | None: ...
    def response_times(self) -> Table: ...
    def write(self, path: str | PathLike[str]) -> None: ...
    def to_json(self) -> str: ...

@final
class Scenario:
    """A scenario as its user wrote it, with changes on top."""

    @staticmethod
    def from_file(path: str | PathLike[str]) -> Scenario: ...
    @staticmethod
    def from_text(text: str, name: str, folder: str | PathLike[str] = ...) -> Scenario: ...
    def changed(
        self, cc: str | None = None, seed: int | None = None, settings: list[tuple[str, str]] = ...
    ) -> Scenario: ...
    @property
    def file(self) -> str: ...
    def title(self) -> str | None: ...
    def seeds(self) -> list[int]: ...
    def hash(self) -> str: ...
    def plan(self, seed: int) -> Plan: ...

@final
class Plan:
    """One simulation, checked and ready to run."""

    @property
    def algorithms(self) -> list[str]: ...
    @property
    def ports(self) -> list[str]: ...
    def warnings(self) -> list[tuple[str, str | None, str]]: ...
    def identity(self) -> str: ...
    def slowest_rate(self) -> int | None: ...
    def hz(self) -> int | None: ...
    def why_serial(self, threads: int) -> str | None: ...
    def code(self) -> list[str]:
        """Names of code from files that it uses and that is not loaded into this process."""

    def with_code(self) -> Plan:
        """The same with that code loaded, in a process that may (`admit_code`)."""

    def run(self, watch: Watch | None = None, threads: int = 1) -> Run: ...

@final
class Rack:
    """A rack to replay captures on."""

    @staticmethod
    def from_file(path: str | PathLike[str], settings: list[tuple[str, str]] = ...) -> Rack: ...
    @staticmethod
    def from_text(
        text: str, name: str, folder: str | PathLike[str] = ..., settings: list[tuple[str, str]] = ...
    ) -> Rack: ...
    @property
    def file(self) -> str: ...
    def facts(self) -> list[tuple[str, str]]: ...
    def hz(self) -> int: ...
    def acknowledges_every_packet(self, cc: str) -> bool: ...
    def marks(self) -> bool: ...
    def accept(self, cc: str) -> None: ...
    def check(self, replay: Replay, cc: str) -> tuple[str, list[tuple[str, str | None, str]]]: ...
    def plan(self, replay: Replay, cc: str, seed: int, trace: bool = False, report: bool = False) -> RackPlan: ...

@final
class RackPlan:
    """A replay, checked and ready to run."""

    @property
    def plan(self) -> Plan: ...
    @property
    def replayed(self) -> Replayed: ...
    def mixed(self, other: RackPlan, servers: list[str]) -> RackPlan: ...

@final
class Replayed:
    """Where everything of a capture went in a plan: what is needed of the plan when its run is over."""

    @property
    def ports(self) -> list[str]: ...
    @property
    def port(self) -> int: ...
    def responses(self) -> Table: ...
    def rounds(self) -> Table: ...
    def response_times(self, run: Run, cc: str, servers: list[str]) -> Table: ...
    def round_times(self, run: Run, cc: str) -> Table: ...
    def stage_times(self, run: Run, cc: str) -> Table: ...
    def tree_times(self, run: Run, cc: str) -> Table: ...
    def connections(self) -> Table: ...

@final
class Lines:
    """Lines of a trace: frames with the columns `time` and `value`, and others (UInt32) that tell the lines apart."""

    def __new__(cls, frames: Sequence[object]) -> Lines: ...
    def envelope(self, points: int, span: tuple[float, float] | None = None) -> Table: ...
    def fitted(self, rows: int) -> Table: ...

@final
class Run:
    """The results of one simulation."""

    @property
    def seed(self) -> int: ...
    @property
    def end_ps(self) -> int: ...
    @property
    def complete(self) -> bool: ...
    @property
    def packet_hops(self) -> int: ...
    def packets_of(self, flow: int, from_ms: float, to_ms: float) -> Table: ...
    def table(
        self, name: str, columns: list[str] | None = None, most: int | None = None, replayed: Replayed | None = None
    ) -> Table:
        """messages, flows, ports, background, queue, window, packets, throughput or internals."""

def end_without_memory(said_on: int = 2) -> None:
    """From now on a failed allocation ends the process with a sentence and exit code 2."""

def say_without_memory(said_on: int) -> None:
    """Say that memory ran out, unless a failed allocation of another thread has said it."""

def clean_and_end() -> None:
    """Remove what :func:`clean_without_memory` named, and end the process with exit code 2."""

def clean_without_memory(paths: Sequence[str | PathLike[str]]) -> None:
    """Name what is to be removed if memory runs out: scratch, and then the folders that were made for it."""

def give_back() -> None:
    """Give free memory back to the system, which the allocator would keep for later."""

def mapped(file: int, kind: str, count: int, nulls: Sequence[int]) -> Table:
    """The column ``values`` of so many numbers of a kind (as :mod:`array` names it) that an open file without a name begins with; `nulls` are places."""

def analyse(
    path: str | PathLike[str],
    gap: str | None = None,
    floor: str | None = None,
    rack: Rack | None = None,
    watch: Watch | None = None,
    aside: PathLike[str] | None = None,
) -> Capture:
    """Read a capture; `rack` is the one that it was taken on, where that is known. Many rows lie in files without a name in the folder `aside`."""

def registry_json(kind: str) -> str:
    """List a registry as JSON."""

def results_schema_json() -> str:
    """The tables of results as JSON: name, meaning, row number, and for each column name, unit, type, meaning, words of its codes."""

@final
class Deployment:
    """Where an algorithm can run on real hosts."""

    @property
    def kernel(self) -> str | None:
        """Congestion control of mainline Linux that it is, or that runs under a shim."""
    @property
    def twin(self) -> str | None:
        """The twin that it is."""
    @property
    def sender_shim(self) -> bool:
        """It needs the library in front of the sending application."""
    @property
    def receiver_shim(self) -> bool:
        """It needs the program on the receiving host."""

def deployment(cc: str) -> Deployment:
    """Tell where an algorithm can run on real hosts; nothing of it for a model that the simulator alone has."""

def needs_quickack(cc: str) -> bool:
    """Tell whether an algorithm, as Linux runs it, lives on RTT samples, so that its receivers are to acknowledge every packet."""

def needs_ecn(cc: str) -> bool:
    """Check the name of an algorithm and tell whether it needs a marking switch."""

def trim_k(c: float, d: float, b: float) -> tuple[float, float, float]:
    """TRIM's threshold: (lower in s, upper in s, buffer needed in packets) from packets/s, seconds, packets."""

def trim_as(c: float, b: float, n: float, w: float) -> tuple[float, float]:
    """TRIM's timers: (lower in s, upper in s) for `n` connections that resume with `w` packets."""

def gss_incast(served: float, n: float) -> tuple[float, float]:
    """Probability of incast after (doubling, one packet more)."""

def rand_enqueue(r_min: int, mss: int, trials: int, seed: int) -> tuple[float, float, float, float]:
    """How often second packets find room: (X2, Y2, both, neither)."""

def rand_rmin(
    cwnds: list[float],
    epoch_cwnd: float,
    w_max: float,
    mss: float,
    *,
    sigma2: float,
    mu: float,
    v_tau: float,
    v_omega: float,
    theta: float,
) -> list[float]:
    """TCPRand's least payload in bytes for each window."""

def dctcp(c: float, rtt: float, k: float, n: float) -> tuple[float, float, float, float]:
    """DCTCP: (least K, alpha, greatest queue, amplitude) in packets."""

def iatcp(c: float, rtt_min: float, n: float, rounding: str) -> tuple[float, float, float, float]:
    """IA-TCP: (share in packets, window in packets, ACK delay in s, packets/s of all)."""

def quantity(kind: str, text: str, option: str) -> float:
    """A quantity with its unit as a number: rate in bit/s, time in s, size in bytes."""

def limit(text: str, wire: float, option: str) -> float:
    """A buffer in packets of `wire` bytes."""

def graph_json(plan: Plan) -> str:
    """A plan's nodes and links as JSON."""

def run_with_pcap(
    plan: Plan, folder: str | PathLike[str], places: list[str], watch: Watch | None = None
) -> tuple[Run, list[str]]:
    """Run a plan and write what its hosts and ports saw into a folder."""

@final
class Setup:
    """What an algorithm knows before the first packet."""

    @property
    def mss(self) -> int: ...
    @property
    def wire(self) -> int: ...
    @property
    def initial_window(self) -> float: ...
    @property
    def initial_ssthresh(self) -> float: ...
    @property
    def profile(self) -> str: ...
    @property
    def rate(self) -> int | None: ...
    @property
    def base_rtt(self) -> float | None: ...
    @property
    def buffer_packets(self) -> float | None: ...
    @property
    def parameters(self) -> dict[str, float | bool]: ...

@final
class Conn:
    """The connection as it is at this instant."""

    @property
    def now(self) -> float: ...
    @property
    def mss(self) -> int: ...
    @property
    def srtt(self) -> float: ...
    @property
    def min_rtt(self) -> float: ...
    @property
    def snd_una(self) -> int: ...
    @property
    def snd_nxt(self) -> int: ...
    @property
    def in_flight(self) -> float: ...
    @property
    def loss_basis(self) -> float: ...
    @property
    def cwnd_limited(self) -> bool: ...
    @property
    def state(self) -> str: ...
    @property
    def message(self) -> tuple[int, int, float | None] | None: ...
    @property
    def uniform(self) -> float: ...

@final
class Ack:
    """One acknowledgement that delivered something."""

    @property
    def acked_bytes(self) -> int: ...
    @property
    def acked_segments(self) -> int: ...
    @property
    def delivered_bytes(self) -> int: ...
    @property
    def delivered_segments(self) -> int: ...
    @property
    def ece(self) -> bool: ...
    @property
    def rtt(self) -> float | None: ...
    @property
    def ack_seq(self) -> int: ...
    @property
    def may_grow(self) -> bool: ...
    @property
    def newly_lost(self) -> int: ...
    @property
    def rate(self) -> tuple[int, float, bool, int, int] | None: ...

def end_with_parent(parent: int, group: bool) -> None:
    """End this process when `parent`, which forked it, ends; with `group`, its process group as well."""

def admit_code(objects: dict[str, tuple[str | PathLike[str], str]]) -> None:
    """From now on this process loads code by itself: C from these objects (path and version by name), classes by their modules."""

def c_places(name: str) -> tuple[PathLike[str], PathLike[str]]:
    """Where the C files of names are compiled to, made if it is missing, and the file of this name."""

def compile_c(name: str, work: str | PathLike[str]) -> tuple[PathLike[str], str, list[PathLike[str]]]:
    """Compile the C file of a name in the empty folder `work` without loading it: the object, its version, and the files that it was made from."""

def confine(
    readable: Sequence[str | PathLike[str]],
    writable: Sequence[str | PathLike[str]],
    memory: int | None = None,
    *,
    programs: bool = False,
    copied: Sequence[str | PathLike[str]] = ...,
) -> None:
    """Take the rights of this process for good: it may read what is in `readable`, write into the folders of `writable`, and compute.

    `memory` is its address space in bytes; with `programs` it may start those that are in `readable`. Of compiled files `copied` copies are kept,
    one for each set of parameters.
    """

def describe_code(name: str) -> dict[str, object]:
    """What code says of itself, loaded into this process, which was told to (`admit_code`)."""

def named_c_files() -> list[tuple[str, PathLike[str]]]:
    """Every name that was given to a C file in this process, with the file."""

def name_c_file(name: str, path: str | PathLike[str]) -> None:
    """Give a C file a name for `cc` in this process, beside its path."""

def kernel_check(scenario: Scenario, plan: Plan, whose: str = "twin", hz: int | None = None) -> None:
    """Raise, with the key's line, when a kernel cannot do what the plan of this scenario asks for."""

def kernel_check_places(plan: Plan, places: list[str]) -> None:
    """Raise when a place to capture at does not exist."""

def kernel_limit(plan: Plan, whose: str = "twin", hz: int | None = None) -> tuple[str, str] | None:
    """What a kernel cannot do of what a plan asks for: (key, sentence); none when it can all of it."""

def kernel_prepare(
    plan: Plan, folder: str | PathLike[str], whose: str = "twin", hz: int | None = None, notes: bool = False
) -> None:
    """Write what the virtual kernel needs into a folder that exists.

    `whose` algorithms run where there is a choice: Linux's and twins in C ("twin"), Linux's and fanin's Rust ("rust"), or fanin's Rust alone
    ("rust-always"). With `notes`, fanin's write down what they are told and decide.
    """

def kernel_replay(folder: str | PathLike[str]) -> tuple[int, int, int, str | None]:
    """Tell fresh algorithms what those of a run with notes were told, and compare their decisions.

    Connections' ends, events, ACKs, and the first difference.
    """

def kernel_results(
    plan: Plan, folder: str | PathLike[str], pcap: str | PathLike[str] | None = None, places: list[str] = ...
) -> Run:
    """Read what the virtual kernel left in a folder; with `pcap`, write captures of `places` there."""
