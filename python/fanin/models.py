"""The papers' closed forms: thresholds, bounds and probabilities without a simulation.

Each form is a function that takes quantities as texts with units and returns a :class:`Model`: named values with units, and a curve where
there is one to draw. ``fanin model`` is the same on the command line.

>>> import fanin
>>> k = fanin.models.trim_k(rate="1Gbps", rtt="200us", buffer="100p")
>>> print(f"{k['lower']:.6f} {k['upper']:.6f}")
0.000273 0.000700
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from fanin import _native
from fanin.errors import ScenarioError

if TYPE_CHECKING:
    import altair as alt

WIRE = 1500
"""Bytes of a packet, as the papers count."""


@dataclass(frozen=True, slots=True)
class Value:
    """A named number: `name`, `value` in base units (s, bit/s, packets, bytes, or none), `unit`, and what it `means`."""

    name: str
    value: float
    unit: str
    means: str

    def shown(self) -> str:
        """For people, with a convenient prefix.

        >>> Value("lower", 0.000273, "s", "").shown()
        '273 us'
        """
        if self.unit == "s":
            for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
                if abs(self.value) >= scale:
                    return f"{self.value / scale:.4g} {unit}"
            return f"{self.value / 1e-9:.4g} ns"
        return f"{self.value:.4g} {self.unit}".rstrip()


@dataclass(frozen=True, slots=True, repr=False)
class Model:
    """What a closed form says.

    Attributes
    ----------
    name, title, source : str
        As in ``fanin model``.
    inputs : dict of str to str
        Quantities as they were given.
    values : list of Value
        The results; ``model["name"]`` is a value's number.
    curve : list of dict
        Points to draw, empty where there is no curve: `x_name` and one column per curve.
    x_name, y_name : str
        What the axes are.
    notes : list of str
        What a reader should know.
    """

    name: str
    title: str
    source: str
    inputs: dict[str, str]
    values: list[Value]
    curve: list[dict[str, float]] = field(default_factory=list)
    x_name: str = ""
    y_name: str = ""
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<Model {self.name}: {', '.join(f'{v.name} {v.shown()}' for v in self.values)}>"

    def _repr_html_(self) -> str:
        """For notebooks: the values."""
        from fanin.pictures.notebook import card

        return card(self.title, ["value", "", "meaning"], [(v.name, v.shown(), v.means) for v in self.values])

    def __getitem__(self, name: str) -> float:
        for value in self.values:
            if value.name == name:
                return value.value
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """The object that ``fanin model NAME --json`` prints (schema: docs/json/model.schema.json)."""
        return {
            "version": _native.VERSION,
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "inputs": self.inputs,
            "values": [{"name": v.name, "value": v.value, "unit": v.unit, "means": v.means} for v in self.values],
            "curve": self.curve,
            "notes": self.notes,
        }

    def chart(self) -> alt.Chart | None:
        """The curve as an Altair chart, or None where there is none."""
        if not self.curve:
            return None
        import altair as alt

        from fanin.pictures.palette import LINES

        names = [c for c in self.curve[0] if c != self.x_name]
        rows = [{"x": p[self.x_name], "curve": n, "y": p[n]} for p in self.curve for n in names]
        colours = list(LINES[: len(names)])
        drawn: alt.Chart = (
            alt.Chart(alt.InlineData(values=rows), title=self.title)
            .mark_line()
            .encode(
                x=alt.X("x:Q", title=self.x_name),
                y=alt.Y("y:Q", title=self.y_name),
                color=alt.Color("curve:N", title=None, scale=alt.Scale(domain=names, range=colours), sort=names),
                tooltip=[alt.Tooltip("x:Q", title=self.x_name), "curve:N", alt.Tooltip("y:Q", format=".4g")],
            )
            .properties(width=520, height=320)
        )
        return drawn


def _capacity(rate: str, packet: str) -> tuple[float, float]:
    wire = _positive("size", packet, "--packet")
    return _positive("rate", rate, "--link") / (8 * wire), wire


def _positive(kind: str, text: str, option: str) -> float:
    value = _native.quantity(kind, text, option)
    if value <= 0:
        raise ScenarioError(f"command line `{option} {text}`: it must be greater than zero")
    return value


def _count(number: float, option: str, least: float = 1, most: float = 1e9) -> float:
    if not least <= number <= most:
        raise ScenarioError(f"command line `{option} {number:g}`: it must be from {least:g} to {most:,.0f}")
    return float(number)


def _buffer(text: str, wire: float, option: str) -> float:
    packets = _native.limit(text, wire, option)
    if packets <= 0:
        raise ScenarioError(f"command line `{option} {text}`: it must be greater than zero")
    return packets


def trim_k(rate: str, rtt: str, buffer: str, packet: str = "1500B") -> Model:
    """TCP-TRIM's delay threshold K: where it must lie, and the buffer that needs (equations 16 to 29).

    Parameters
    ----------
    rate : str
        Bottleneck.
    rtt : str
        Round trip without queueing.
    buffer : str
        Of the bottleneck port, packets or bytes.
    packet : str
        On the wire.

    Examples
    --------
    >>> [value.shown() for value in trim_k("1Gbps", "224.64us", "100p").values]
    ['314.4 us', '712.3 us', '33.68 packets', '7.482 packets', '40.64 packets']
    """
    c, wire = _capacity(rate, packet)
    d, b = _positive("time", rtt, "--rtt"), _buffer(buffer, wire, "--buffer")
    lower, upper, needed = _native.trim_k(c, d, b)
    notes = (
        [] if lower <= upper else ["no K does both: the buffer is smaller than needed, and TRIM takes the upper bound"]
    )
    if upper < d:
        notes.append(
            f"that bound lies below the round trip without queueing, since the buffer is smaller than C*D = {c * d:.3g} packets: every ACK says "
            "congested, and windows sink to 2 even on an idle network; a run needs a larger buffer, or cc.trim_k = fixed"
        )
    return Model(
        "trim-k",
        trim_k.__doc__.split("\n")[0] if trim_k.__doc__ else "",
        "TCP-TRIM, section III-D",
        {"rate": rate, "rtt": rtt, "buffer": buffer, "packet": packet},
        [
            Value("lower", lower, "s", "least K: no number of flows drains the queue above it"),
            Value("upper", upper, "s", "greatest K: a slow start below it fits the buffer"),
            Value("buffer_needed", needed, "packets", "least buffer for which a K exists"),
            Value("queue_at_lower", c * (lower - d), "packets", "queue that the least K leaves standing"),
            # Equation 4 holds from K = D on: below it, no queue stands.
            Value("queue_at_upper", max(c * (upper - d), 0.0), "packets", "queue that the greatest K leaves standing"),
        ],
        notes=notes,
    )


def trim_as(rate: str, buffer: str, connections: float, window: float, packet: str = "1500B") -> Model:
    """Bounds of TCP-TRIM's asynchronous timers (equations 32 and 33).

    Parameters
    ----------
    rate : str
        Bottleneck.
    buffer : str
        Of the bottleneck port, packets or bytes.
    connections : float
        Connections that resume at once.
    window : float
        Packets that each resumes with.
    packet : str
        On the wire.

    Examples
    --------
    >>> [value.shown() for value in trim_as("1Gbps", "100p", 40, 5).values]
    ['540 us', '2.34 ms']
    """
    c, wire = _capacity(rate, packet)
    b = _buffer(buffer, wire, "--buffer")
    lower, upper = _native.trim_as(c, b, _count(connections, "--connections"), _count(window, "--window"))
    return Model(
        "trim-as",
        trim_as.__doc__.split("\n")[0] if trim_as.__doc__ else "",
        "TCP-TRIM, section III-C",
        {"rate": rate, "buffer": buffer, "connections": f"{connections:g}", "window": f"{window:g}", "packet": packet},
        [
            Value("lower", lower, "s", "least maximum of the timer without loss, as printed"),
            Value("upper", upper, "s", "greatest maximum that keeps the link busy: what TRIM waits at most"),
        ],
        notes=[
            "equation 31 subtracts the service twice, so the lower bound is half of what it should be; TRIM uses the upper one"
        ],
    )


def gss_incast(rate: str, rtt: str, buffer: str, flows: float = 65, most: float = 150, packet: str = "1500B") -> Model:
    """Probability that windows which fill pipe and buffer end in a timeout after one more round trip (GSS, equations 1 to 6).

    Parameters
    ----------
    rate : str
        Bottleneck.
    rtt : str
        Round trip without queueing.
    buffer : str
        Of the bottleneck port, packets or bytes.
    flows : float
        Flows whose probability is stated.
    most : float
        The curve goes from 1 flow to this many.
    packet : str
        On the wire.

    Examples
    --------
    >>> [value.shown() for value in gss_incast("1Gbps", "100us", "250p").values]
    ['0.9861', '0.1048', '258.3 packets']
    """
    c, wire = _capacity(rate, packet)
    served = c * _positive("time", rtt, "--rtt") + _buffer(buffer, wire, "--buffer")
    doubling, gentle = _native.gss_incast(served, _count(flows, "--flows"))
    curve = []
    for n in range(1, int(_count(most, "--most", most=100_000)) + 1):
        point = _native.gss_incast(served, float(n))
        curve.append({"flows": float(n), "slow start": point[0], "gentle slow start": point[1]})
    return Model(
        "gss-incast",
        gss_incast.__doc__.split("\n")[0] if gss_incast.__doc__ else "",
        "Gentle Slow Start, sections 2.3 and 3.1, figure 3",
        {"rate": rate, "rtt": rtt, "buffer": buffer, "flows": f"{flows:g}", "packet": packet},
        [
            Value("slow_start", doubling, "", f"probability with {flows:g} flows that double their windows"),
            Value("gentle_slow_start", gentle, "", f"probability with {flows:g} flows that add one packet"),
            Value("served", served, "packets", "one round trip's service and the buffer"),
        ],
        curve,
        "flows",
        "probability of incast",
    )


def rand_enqueue(rmin: int = 1, mss: int = 1448, trials: int = 100_000, seed: int = 1) -> Model:
    """TCPRand: how often the second packets of two flows find room in a queue that was just filled (figure 5), by Monte Carlo.

    Parameters
    ----------
    rmin : int
        Least payload in bytes; with the greatest, ordinary TCP.
    mss : int
        Greatest payload in bytes.
    trials : int
        How many times.
    seed : int
        Of the random numbers.

    Examples
    --------
    >>> [f"{value.value:.2f}" for value in rand_enqueue().values]
    ['0.62', '0.61', '0.34', '0.11']
    """
    if not 1 <= rmin <= mss <= 65_495:
        raise ScenarioError(f"command line `--rmin {rmin}` and `--mss {mss}`: 1 <= rmin <= mss <= 65495 must hold")
    if not 1 <= trials <= 100_000_000:
        raise ScenarioError(f"command line `--trials {trials}`: it must be from 1 to 100000000")
    if not 0 <= seed < 2**63:
        raise ScenarioError(f"command line `--seed {seed}`: it must be a whole number from 0 to 2^63 - 1")
    x2, y2, both, neither = _native.rand_enqueue(rmin, mss, trials, seed)
    return Model(
        "rand-enqueue",
        rand_enqueue.__doc__.split("\n")[0] if rand_enqueue.__doc__ else "",
        "TCPRand, section 3.2, figure 5",
        {"rmin": f"{rmin}B", "mss": f"{mss}B", "trials": str(trials), "seed": str(seed)},
        [
            Value("x2", x2, "", "the flow that just lost a packet finds room"),
            Value("y2", y2, "", "the flow that just took the last place finds room"),
            Value("both", both, "", "both do"),
            Value("neither", neither, "", "neither does"),
        ],
        notes=[f"standard error of each at most {0.5 / trials**0.5:.1g}"],
    )


def rand_rmin(
    epoch: float,
    wmax: float,
    mss: int = 1460,
    sigma2: float = 1.0,
    mu: float = 1.0,
    tau: float = 1.0,
    omega: float = 1.0,
    theta: float = 200.0,
) -> Model:
    """TCPRand adaptive: the least payload along a window's way back to where it lost (Algorithm 1, equations 2 and 3).

    Parameters
    ----------
    epoch : float
        Window after the last reduction, packets.
    wmax : float
        Window at the last reduction, packets.
    mss : int
        Greatest payload in bytes.
    sigma2, mu : float
        Variance and mean of the normal curve.
    tau, omega : float
        Where randomness begins (1: at the epoch's window, inf: at wmax) and ends (1: as far beyond wmax, 0: never).
    theta : float
        Least of all, bytes.

    Examples
    --------
    >>> [value.shown() for value in rand_rmin(70, 100).values]
    ['1228 bytes', '1010 bytes', '730 bytes']
    """
    if not 1 <= epoch < wmax < 1e9:
        raise ScenarioError(f"command line `--epoch {epoch:g}` and `--wmax {wmax:g}`: 1 <= epoch < wmax must hold")
    if not 1 <= mss <= 65_495:
        raise ScenarioError(f"command line `--mss {mss}`: it must be from 1 to 65495")
    # Negated, so that a NaN is refused too; tau may be infinite.
    if not (0 < sigma2 < inf and tau > 0 and omega >= 0 and abs(mu) < inf and 0 <= theta < inf):
        raise ScenarioError(
            "command line `--sigma2`, `--mu`, `--tau`, `--omega` and `--theta`: each must be a number, `--sigma2` and `--tau` above zero, "
            "`--omega` and `--theta` not below"
        )

    def at(cwnds: list[float]) -> list[float]:
        rule = {"sigma2": sigma2, "mu": mu, "v_tau": tau, "v_omega": omega, "theta": theta}
        return _native.rand_rmin(cwnds, epoch, wmax, float(mss), **rule)

    steps = 200
    end = wmax + (wmax - epoch) * 1.25
    windows = [epoch + (end - epoch) * i / steps for i in range(steps + 1)]
    first, middle, last = at([epoch, (epoch + wmax) / 2, wmax])
    return Model(
        "rand-rmin",
        rand_rmin.__doc__.split("\n")[0] if rand_rmin.__doc__ else "",
        "TCPRand, section 4, Algorithm 1",
        {
            "epoch": f"{epoch:g}p",
            "wmax": f"{wmax:g}p",
            "mss": f"{mss}B",
            **{k: f"{v:g}" for k, v in {"sigma2": sigma2, "mu": mu, "tau": tau, "omega": omega}.items()},
            "theta": f"{theta:g}B",
        },
        [
            Value("at_epoch", first, "bytes", "least payload at the window after the reduction"),
            Value("halfway", middle, "bytes", "halfway back"),
            Value("at_wmax", last, "bytes", "at the window that lost"),
        ],
        [{"cwnd (packets)": w, "least payload": r} for w, r in zip(windows, at(windows), strict=True)],
        "cwnd (packets)",
        "least payload (bytes)",
    )


def dctcp_k(rate: str, rtt: str, flows: float = 2, k: str | None = None, packet: str = "1500B") -> Model:
    """DCTCP's marking threshold, and the queue and fraction it settles at (SIGCOMM 2010, equations 6 to 13).

    Parameters
    ----------
    rate : str
        Bottleneck.
    rtt : str
        Round trip without queueing.
    flows : float
        Synchronised long flows.
    k : str, optional
        Threshold, packets or bytes; the least one unless given.
    packet : str
        On the wire.

    Examples
    --------
    >>> dctcp_k("100Mbps", "10ms").values[0].shown()
    '11.9 packets'
    """
    c, wire = _capacity(rate, packet)
    d, n = _positive("time", rtt, "--rtt"), _count(flows, "--flows")
    least = c * d / 7 if k is None else _buffer(k, wire, "--k")
    k_least, alpha, queue, amplitude = _native.dctcp(c, d, least, n)
    notes = []
    if amplitude > queue:
        notes = [
            f"windows swing by {amplitude:.4g} packets, and the greatest queue is {queue:.4g}: equation 11 holds where it is not below zero, so here "
            "the queue empties and the link idles; choose a larger --k"
        ]
    return Model(
        "dctcp-k",
        dctcp_k.__doc__.split("\n")[0] if dctcp_k.__doc__ else "",
        "DCTCP (SIGCOMM 2010), section 3.3; RFC 8257, section 4.1",
        {"rate": rate, "rtt": rtt, "flows": f"{flows:g}", "k": k or "the least", "packet": packet},
        [
            Value("k_least", k_least, "packets", "least threshold that keeps the link busy"),
            Value("alpha", alpha, "", "fraction of marked packets that the senders settle at"),
            Value("queue_max", queue, "packets", "greatest queue"),
            Value("queue_amplitude", min(amplitude, queue), "packets", "height of the queue's saw-tooth"),
        ],
        notes=notes,
    )


def iatcp_window(rate: str, rtt: str, connections: float, rounding: str = "nearest", packet: str = "1500B") -> Model:
    """IA-TCP: the window that a receiver gives each connection, and how long it holds ACKs (DCVegas, equations 3 and 4).

    Parameters
    ----------
    rate : str
        Link of the receiver.
    rtt : str
        Least round trip.
    connections : float
        Connections that send.
    rounding : str
        Of a share to whole packets: nearest, down or up.
    packet : str
        On the wire.

    Examples
    --------
    >>> [value.shown() for value in iatcp_window("1Gbps", "224.64us", 64).values]
    ['0.2925 packets', '1 packets', '543.4 us', '8.333e+04 packets/s']
    """
    if rounding not in ("nearest", "down", "up"):
        raise ScenarioError(f"command line `--rounding {rounding}`: there are nearest, down and up")
    c, _ = _capacity(rate, packet)
    n = _count(connections, "--connections")
    share, window, delay, together = _native.iatcp(c, _positive("time", rtt, "--rtt"), n, rounding)
    return Model(
        "iatcp-window",
        iatcp_window.__doc__.split("\n")[0] if iatcp_window.__doc__ else "",
        "DCVegas, equations 3 and 4, on IA-TCP",
        {"rate": rate, "rtt": rtt, "connections": f"{connections:g}", "rounding": rounding, "packet": packet},
        [
            Value("share", share, "packets", "capacity divided by connections"),
            Value("window", window, "packets", "advertised: whole packets, at least 1"),
            Value("ack_delay", delay, "s", "each ACK is held so long"),
            Value("together", together, "packets/s", "all connections"),
        ],
    )


MODELS: dict[str, Callable[..., Model]] = {
    "trim-k": trim_k,
    "trim-as": trim_as,
    "gss-incast": gss_incast,
    "rand-enqueue": rand_enqueue,
    "rand-rmin": rand_rmin,
    "dctcp-k": dctcp_k,
    "iatcp-window": iatcp_window,
}
"""The closed forms by the name of their sub-command."""
