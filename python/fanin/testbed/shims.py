"""Algorithms that run beside the kernel's TCP: what the kernel runs in their place, and what stands in front of it."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fanin import _native
from fanin.errors import EngineError, ScenarioError
from fanin.linux import program
from fanin.runs.job import Job, algorithms_of

TCPRAND = "tcprand+"
TWIN = "@linux"
LIBRARY = "libfanin_tcprand.so"

WORDS = {
    "iatcp": {"iatcp_capacity": ("rate_mbps", 1e-6)},
    "ictcp": {
        "ictcp_capacity": ("rate_mbps", 1e-6),
        "ictcp_share": ("share_pm", 1000),
        "ictcp_beta": ("beta_pm", 1000),
        "ictcp_gamma1": ("gamma1_pm", 1000),
        "ictcp_gamma2": ("gamma2_pm", 1000),
        "ictcp_patience": ("patience", 1),
        "ictcp_fair_below": ("fair_below_pm", 1000),
        "ictcp_min_window": ("min_window", 1),
    },
}
"""The receivers' algorithms: which parameter of the programs in ``kernel/receiver`` each of theirs is, and in what unit."""

VARIABLE = {"rand_rmin": "FANIN_TCPRAND_MIN"}
"""TCPRand's parameters that the library reads by another name than their own."""

SIZES = ("rand_rmin", "rand_theta")
"""Those that are sizes."""

SENDER = "reno"
"""What the kernel runs under a receiver's algorithm."""


@dataclass(frozen=True, slots=True)
class Manner:
    """What runs beside a plan.

    Attributes
    ----------
    environment : dict
        Of the sending process: a library in front of it.
    twin_only : bool
        Load fanin's twin also where the kernel has a congestion control of the name: ``dctcp@linux``.
    http : bool
        Over HTTP, with nginx at every server.
    receiver : str
        Algorithm that sets the windows of every host which receives more than it sends; empty: none.
    receiver_params : sequence of str
        ``key=value`` for it.
    """

    environment: dict[str, str] = field(default_factory=dict)
    twin_only: bool = False
    http: bool = False
    receiver: str = ""
    receiver_params: Sequence[str] = ()


PLAIN = Manner()


def library() -> Path:
    """TCPRand's preload library, as ``make linux`` built it.

    Raises
    ------
    fanin.EngineError
        When it is not built.
    """
    built = Path(__file__).parents[3] / "target" / "release" / LIBRARY
    if not built.exists():
        raise EngineError(f"{LIBRARY} is not built; run `make linux` (see docs/linux.md)")
    return built


def beside(job: Job) -> tuple[Job, Manner]:
    """Take the shim out of a job's algorithm.

    Parameters
    ----------
    job : fanin.runs.job.Job
        Of any algorithm; one without a shim comes back as it is.

    Returns
    -------
    fanin.runs.job.Job
        With the kernel's sender alone.
    Manner
        What runs beside it.

    Raises
    ------
    fanin.ScenarioError
        When the scenario sets a parameter that the shim does not have.
    fanin.EngineError
        When the shim is not built.
    """
    name = algorithms_of(job.plan())
    if name.endswith(TWIN):
        return _named(job, name.removesuffix(TWIN)), Manner(twin_only=True)
    if name in program.RECEIVERS:
        return _receiver(job, name)
    if not name.startswith(TCPRAND):
        return job, PLAIN
    environment = {"LD_PRELOAD": str(library()), "FANIN_TCPRAND_SEED": str(job.seed + 1)}
    for key, value in _parameters(job, "rand_").items():
        written = value.strip("\"' ")
        if key == "rand_cwnd_unit":
            if written == "packets":
                continue
            raise ScenarioError("cc.rand_cwnd_unit: Linux counts its window in packets; remove it, or use --engine sim")
        # The plan has been checked: sizes are sizes.
        if key in SIZES:
            written = f"{_native.quantity('size', written, f'cc.{key}'):g}"
        if key != "rand_rmin" or float(written) > 0:
            environment[VARIABLE.get(key) or key.replace("rand_", "FANIN_TCPRAND_").upper()] = written
    return _without(job, name.removeprefix(TCPRAND), "rand_"), Manner(environment)


def _receiver(job: Job, name: str) -> tuple[Job, Manner]:
    """A job of a receiver's algorithm, as the kernel's sender and the programs at the receivers."""
    prefix = f"{name}_"
    known = WORDS[name]
    rate = job.plan().slowest_rate() or 0
    told = {"rate_mbps": round(rate * 1e-6)}
    for key, value in _parameters(job, prefix).items():
        if key not in known:
            raise ScenarioError(
                f"cc.{key}: the program in front of a receiver's kernel does not have it (docs/linux.md); remove it, or use --engine sim"
            )
        program_key, factor = known[key]
        # The plan has been checked: it is a rate, or a number.
        written = value.strip("\"'")
        number = _native.quantity("rate", written, f"cc.{key}") if key.endswith("capacity") else float(written)
        if number > 0:
            told[program_key] = round(number * factor)
    if told["rate_mbps"] < 1:
        raise ScenarioError(f"{name} counts its link's rate in Mbps; {rate} bit/s is too slow for the testbed")
    params = [f"{key}={value}" for key, value in told.items()]
    return _without(job, SENDER, prefix), Manner(receiver=name, receiver_params=params)


def _parameters(job: Job, prefix: str) -> dict[str, str]:
    """The algorithm's parameters that the scenario or the command line sets."""
    own = tomllib.loads(job.scenario.text).get("cc", {}) if job.cc is None else {}
    values = {key: str(value) for key, value in own.items() if key.startswith(prefix)}
    return values | {key.removeprefix("cc."): value for key, value in job.settings if key.startswith(f"cc.{prefix}")}


def _named(job: Job, cc: str) -> Job:
    """The job under another algorithm; one that a setting named (``--set cc.name=``) counts no more."""
    return replace(job, cc=cc, settings=tuple((key, value) for key, value in job.settings if key != "cc.name"))


def _without(job: Job, cc: str, prefix: str) -> Job:
    """The job under another algorithm, without the parameters of this one."""
    named = _named(job, cc)
    return replace(named, settings=tuple(s for s in named.settings if not s[0].startswith(f"cc.{prefix}")))
