"""Algorithms that run beside the kernel's TCP: what the kernel runs in their place, and the library in front of the player."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path

from fanin.errors import EngineError, ScenarioError
from fanin.runs.job import Job, algorithms_of

TCPRAND = "tcprand+"
TWIN = "@linux"
LIBRARY = "libfanin_tcprand.so"


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
    """

    environment: dict[str, str] = field(default_factory=dict)
    twin_only: bool = False
    http: bool = False


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
        return replace(job, cc=name.removesuffix(TWIN)), Manner(twin_only=True)
    if not name.startswith(TCPRAND):
        return job, PLAIN
    own = tomllib.loads(job.scenario.text).get("cc", {}) if job.cc is None else {}
    values = {key: str(value) for key, value in own.items() if key.startswith("rand_")}
    values |= {key.removeprefix("cc."): value for key, value in job.settings if key.startswith("cc.rand_")}
    environment = {"LD_PRELOAD": str(library()), "FANIN_TCPRAND_SEED": str(job.seed + 1)}
    for key, value in values.items():
        if key != "rand_rmin":
            raise ScenarioError(
                f"cc.{key}: TCPRand's library has the default adaptive rule; remove it, or use --engine sim"
            )
        # The plan has been checked: it is a size.
        number = float(value.strip("\"' ").removesuffix("B").removesuffix("K"))
        if number > 0:
            environment["FANIN_TCPRAND_MIN"] = str(number * (1000 if "K" in value else 1))
    settings = tuple((key, value) for key, value in job.settings if not key.startswith("cc.rand_"))
    return replace(job, cc=name.removeprefix(TCPRAND), settings=settings), Manner(environment)
