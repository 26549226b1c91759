"""What an answer depends on: the values of a rack at which it is another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fanin.calibration.space import between

LOOK_UP = {
    "rack.buffer": "look up the queue limit of the switch port to the aggregator",
    "rack.rate": "look up the rate of the switch port to the aggregator, or of the shaper on it",
}
"""Where a value is found."""


def unless(good: Sequence[Mapping[str, str]], bad: Sequence[Mapping[str, str]], now: str) -> str:
    """Where the answer does not hold, what holds there instead, and how to tell which of the two it is.

    Parameters
    ----------
    good, bad : sequence of mapping
        Racks on which the answer holds, and on which it does not, as values by key.
    now : str
        The current setting, which is to be kept there.

    Examples
    --------
    >>> unless([{"rack.buffer": "40p"}, {"rack.buffer": "60p"}], [{"rack.buffer": "80p"}], "cubic")
    'If the buffer is 80p or more, keep cubic: look up the queue limit of the switch port to the aggregator, and give it with --set rack.buffer=VALUE.'
    >>> unless([{"rack.rate": "1Gbps"}], [{"rack.rate": "500Mbps"}], "reno")[:48]
    'If the rate is 500Mbps or less, keep reno: look '
    >>> racks = [{"rack.rate": rate, "rack.buffer": size} for rate in ("1Gbps", "2Gbps") for size in ("20p", "40p")]
    >>> unless([racks[0], racks[3]], [racks[1], racks[2]], "cubic")
    'Not so at rate 1Gbps, buffer 40p; rate 2Gbps, buffer 20p: look these values up before you act on this.'
    """
    for key in bad[0] if bad else ():
        if key not in LOOK_UP or not all(key in rack for rack in (*good, *bad)):
            continue
        fine, others = ([between.position(key, rack[key]) for rack in racks] for racks in (good, bad))
        name, known = key.removeprefix("rack."), f"{LOOK_UP[key]}, and give it with --set {key}=VALUE"
        if min(others) > max(fine):
            end = min((rack[key] for rack in bad), key=lambda value: between.position(key, value))
            return f"If the {name} is {end} or more, keep {now}: {known}."
        if max(others) < min(fine):
            end = max((rack[key] for rack in bad), key=lambda value: between.position(key, value))
            return f"If the {name} is {end} or less, keep {now}: {known}."
    told = [", ".join(f"{key.removeprefix('rack.')} {value}" for key, value in rack.items()) for rack in bad]
    return f"Not so at {'; '.join(told)}: look these values up before you act on this."
