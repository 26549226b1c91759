"""Random scenarios that both engines play, drawn by a program, so that nothing was mended for them before."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from lab.validation.cases import TCP, Case

GROUP = "random"
"""The group of all of them."""

OTHERS = ("trim", "gss+dctcp", "l2dct", "dcvegas")
"""Fanin's own algorithms: the same Rust in the simulator and in the kernel, so that a difference is the stack's."""

RATES = {"100Mbps": 1e8, "300Mbps": 3e8, "1Gbps": 1e9, "2500Mbps": 2.5e9, "10Gbps": 1e10}

PACKETS = 40_000
"""Long flows last about as many packets at the bottleneck, and at least :data:`LEAST_S`."""

DATAGRAMS = 100_000
"""At most about so many datagrams beside other traffic."""

LEAST_S = 0.1

ROUND_TRIPS = 60
"""... and at least so many round trips of the empty path."""


@dataclass
class _Draw:
    """What the parts of one scenario know of each other."""

    rng: random.Random
    rate: float
    rtt: float
    senders: int
    seconds: float
    room: int
    """Packets of the bottleneck's buffer."""

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def between(self, low: float, high: float) -> float:
        """A number drawn evenly on a logarithmic scale."""
        return math.exp(self.rng.uniform(math.log(low), math.log(high)))

    def micro(self, seconds: float) -> str:
        return f'"{max(1, round(seconds * 1e6))}us"'


def drawn(number: int, seed: int) -> Case:
    """One random scenario; the same for the same number and seed.

    Parameters
    ----------
    number, seed : int
        Which one, of which series.

    Examples
    --------
    >>> drawn(3, 1) == drawn(3, 1), drawn(3, 1).text == drawn(3, 2).text
    (True, False)
    """
    rng = random.Random(f"{seed}/{number}")
    rate_name = rng.choice(list(RATES))
    rate = RATES[rate_name]
    d = _Draw(rng, rate, 0.0, 1, 0.0, 0)
    # No round trip is shorter than a few packets' time on the link.
    d.rtt = d.between(max(1e-5, 1.5e4 / rate / 4), 1e-2)
    d.senders = max(1, round(d.between(1, 64)))
    d.room = round(d.between(8, 1000))
    d.seconds = max(LEAST_S, PACKETS * 12_000 / rate, ROUND_TRIPS * d.rtt)
    name = rng.choices(list(KINDS), [weight for weight, _ in KINDS.values()])[0]
    if name == "convergence":
        d.senders = min(d.senders, 6)
    topology, about, port = _topology(d, rate_name, pairs=name in PAIRS)
    stack = _stack(d)
    workload, messages, mixed = _workload(d, name)
    if name == "mixed":
        # DCTCP asks for ECN by itself, and a kernel has the setting per host.
        stack = stack.replace('ecn = "classic"\n', "")
    if "mss = 536\n" in stack or "mss = 1000\n" in stack:
        # The MTU is as small, and a larger datagram would leave in fragments.
        workload = workload.replace('packet = "1000B"', 'packet = "500B"').replace(
            'packet = "1500B"', 'packet = "500B"'
        )
    algorithm = rng.choice(OTHERS) if d.chance(0.12) else rng.choice(TCP)
    if 'recovery = "newreno"' in stack and algorithm == "bbr":
        algorithm = "reno"
    text = f'[topology]\n{topology}[stack]\nprofile = "linux"\n{stack}{workload}[run]\nduration = "{d.seconds:.3f}s"\n'
    kind = f"{name}, {about}, {d.senders} at {rate_name}, {d.rtt * 1e6:.0f} us, {d.room}p"
    shown = f"{seed}/{number}: {kind}{', ' + mixed if mixed else ''}"
    return Case(shown, GROUP, text, messages=messages, cc=(algorithm,), port=port)


def _room(d: _Draw) -> str:
    return f'"{d.room * 1500}B"' if d.chance(0.2) else f'"{d.room}p"'


def _topology(d: _Draw, rate: str, pairs: bool) -> tuple[str, str, str]:
    """Its TOML, what it is in a word, and the bottleneck's port."""
    mark = max(1, round(d.room * d.rng.uniform(0.08, 0.8)))
    queue = f"buffer = {_room(d)}\n" + (f'mark = "{mark}p"\n' if d.chance(0.6) else "")
    pick = d.rng.random()
    if pick < 0.5:
        senders = f'kind = "star"\nsenders = {d.senders}\nrate = "{rate}"\ndelay = {d.micro(d.rtt / 4)}\n'
        if d.chance(0.25):
            faster = [name for name, bits in RATES.items() if bits > d.rate]
            if faster:
                senders = senders.replace(f'rate = "{rate}"', f'rate = "{d.rng.choice(faster)}"')
                senders += f'receiver_rate = "{rate}"\n'
        return senders + queue, "star", "switch->client"
    if pick < 0.7:
        return _unequal(d, rate) + queue, "unequal star", "switch->client"
    if pick < 0.88 and pairs:
        bottleneck = f'bottleneck_rate = "{rate}"\nbottleneck_delay = {d.micro(d.rtt / 4)}\n'
        hosts = f'kind = "dumbbell"\npairs = {d.senders}\nrate = "{d.rng.choice([rate, "10Gbps"])}"\n'
        return hosts + f"delay = {d.micro(d.rtt / 8)}\n" + bottleneck + queue, "dumbbell", "left->right"
    leaves, spines = d.rng.choice((2, 3, 4)), d.rng.choice((1, 2, 4))
    each = max(2, min(8, math.ceil(d.senders / leaves)))
    d.senders = leaves * each - 1
    fabric = f'kind = "leaf_spine"\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {each}\nrate = "{rate}"\n'
    return fabric + f"delay = {d.micro(d.rtt / 8)}\n" + queue, "leaf-spine", "leaf0->h0"


def _unequal(d: _Draw, rate: str) -> str:
    """A star whose hosts have rates and distances of their own."""
    names = [f"s{i + 1}" for i in range(d.senders)]
    spread, rates = d.rng.choice((1.5, 3, 10)), [rate, rate, d.rng.choice(list(RATES))]
    links = []
    for name in names:
        delay = d.micro(d.rtt / 4 * d.rng.uniform(1 / spread, 1) * 2)
        links.append(f'    {{ between = ["{name}", "switch"], rate = "{d.rng.choice(rates)}", delay = {delay} }},')
    links.append(f'    {{ between = ["switch", "client"], rate = "{rate}", delay = {d.micro(d.rtt / 8)} }},')
    hosts = ", ".join(f'"{name}"' for name in [*names, "client"])
    cables = "\n".join(links)
    return f'kind = "graph"\nhosts = [{hosts}]\nswitches = ["switch"]\nlink = [\n{cables}\n]\n'


def _stack(d: _Draw) -> str:
    """Settings of the hosts: mostly none, else one or two."""
    settings: list[Callable[[], str]] = [
        lambda: f"initial_window = {d.rng.choice((1, 2, 3, 4, 20, 40))}\n",
        lambda: f'min_rto = "{d.rng.choice((5, 10, 50))}ms"\n',
        lambda: f"mss = {d.rng.choice((536, 1000, 8948))}\n",
        lambda: 'recovery = "newreno"\n',
        lambda: "delack_segments = 1\n",
        lambda: 'cwnd_validation = "linux-keep"\n',
        lambda: 'timestamps = false\nheader = "40B"\nmss = 1460\n',
        lambda: 'ecn = "classic"\n',
        lambda: "comp_sack_nr = 0\n",
        lambda: 'nagle = "off"\n',
        lambda: "handshake = false\n",
    ]
    text = "".join(make() for make in d.rng.sample(settings, d.rng.choice((0, 0, 1, 1, 2))))
    # Two of them may set the same knob.
    return text.replace("mss = 1460\n", "") if text.count("mss =") > 1 else text


def _workload(d: _Draw, kind: str) -> tuple[str, bool, str]:
    """Its TOML, whether messages are what counts, and the algorithms of its own."""
    tables, mixed = KINDS[kind][1](d)
    datagrams = d.chance(0.15)
    messages = kind not in ("long", "convergence", "mixed")
    if messages and kind not in ("poisson", "mice", "mapreduce"):
        # They end by themselves, datagrams do not.
        d.seconds = 2.0 if datagrams else 60.0
    if datagrams:
        share, size = d.rng.uniform(0.05, 0.4), d.rng.choice((200, 1000, 1500))
        bits = min(d.rate * share, DATAGRAMS * size * 8 / d.seconds) / d.senders
        tables.append(f'kind = "cbr"\nrate = "{max(1, round(bits / 1e3))}kbps"\npacket = "{size}B"\n')
        mixed = f"{mixed} with datagrams".strip()
    text = "".join(f"[[workload]]\n{table}" for table in tables)
    return text, messages, mixed


def _starts(d: _Draw) -> str:
    return d.rng.choice(('jitter = "1ms"\n', 'jitter = "10us"\n', f"stagger = {d.micro(d.seconds / 4 / d.senders)}\n"))


def _long(d: _Draw) -> tuple[list[str], str]:
    count = d.rng.choice((1, 1, 1, 2, 3))
    return [f'kind = "long"\ncount = {count}\n{_starts(d)}'], ""


def _bytes(d: _Draw, low: float, high: float) -> str:
    return f'"{round(d.between(low, high))}B"'


def _incast(d: _Draw) -> tuple[list[str], str]:
    size = _bytes(d, 2_000, min(300_000, 3e7 / d.senders))
    text = f'kind = "incast"\nbytes = {size}\nrounds = {d.rng.choice((3, 5, 8))}\njitter = {d.micro(d.between(2e-6, 1e-3))}\n'
    if d.chance(0.6):
        text += 'request = "100B"\n'
    text += f'open = "{d.rng.choice(("first-use", "first-use", "before", "each-round"))}"\n'
    if 'open = "before"' in text:
        text += f"lead = {d.micro(max(0.01, 3 * d.rtt))}\n"
    text += d.rng.choice(("", f'gap = "{d.rng.choice((1, 10, 300))}ms"\n'))
    return [text + ("barrier = false\n" if d.chance(0.2) else "")], ""


def _on_off(d: _Draw) -> tuple[list[str], str]:
    gap = d.rng.choice(("0.2ms", "1ms", "5ms", "50ms"))
    text = f'kind = "http_on_off"\nresponses = {max(5, min(60, 800 // d.senders))}\n'
    text += d.rng.choice(('size = { uniform = ["2KB", "10KB"] }\n', 'size = { uniform = ["1KB", "100KB"] }\n', ""))
    text += f'gap = {{ exponential = "{gap}" }}\n'
    if d.chance(0.5):
        text += 'closed_loop = true\nrequest = "100B"\n'
    if d.chance(0.25):
        text += "new_connection = true\n"
    elif d.chance(0.4):
        text += 'train = "256KB"\ntrain_start = "100ms"\n'
    return [text], ""


def _search(d: _Draw) -> tuple[list[str], str]:
    total = _bytes(d, 20_000, 2_000_000)
    pause = d.rng.choice(('gap = "2ms"\n', 'interval = "20ms"\n'))
    return [f'kind = "web_search"\ntotal = {total}\nqueries = 8\njitter = "20us"\n{pause}'], ""


def _mapreduce(d: _Draw) -> tuple[list[str], str]:
    background = d.rng.choice((0, 1, 2)) if d.senders > 4 else 0
    unit = _bytes(d, 10_000, min(256_000, 2e7 / d.senders))
    return [f'kind = "mapreduce"\nunit = {unit}\nrounds = 5\njitter = "20us"\nbackground = {background}\n'], ""


def _poisson(d: _Draw) -> tuple[list[str], str]:
    size = d.rng.choice(("", 'size = { exponential = "50KB" }\n', 'size = { uniform = ["2KB", "200KB"] }\n'))
    stop = d.micro(d.seconds * 0.8)
    return [f'kind = "poisson"\nload = {d.rng.uniform(0.2, 0.85):.2f}\nto_one = true\nstop = {stop}\n{size}'], ""


def _convergence(d: _Draw) -> tuple[list[str], str]:
    d.seconds *= 1.5
    return [f'kind = "convergence"\nstep = {d.micro(d.seconds / 2 / (d.senders + 1))}\n'], ""


def _mice(d: _Draw) -> tuple[list[str], str]:
    gap = d.micro(d.seconds / 40)
    elephant = f'kind = "long"\ncount = 1\nclass = "elephants"\n{_starts(d)}'
    return [
        elephant,
        f'kind = "http_on_off"\nclass = "mice"\nresponses = 30\nsize = {{ uniform = ["1KB", "20KB"] }}\ngap = {{ exponential = {gap} }}\n',
    ], ""


def _mixed(d: _Draw) -> tuple[list[str], str]:
    one, other = d.rng.sample(TCP, 2)
    tables = [f'kind = "long"\nclass = "{name}"\n{_starts(d)}cc = {{ name = "{name}" }}\n' for name in (one, other)]
    return tables, f"{one} beside {other}"


KINDS: dict[str, tuple[int, Callable[[_Draw], tuple[list[str], str]]]] = {
    "long": (3, _long),
    "incast": (4, _incast),
    "ON/OFF": (3, _on_off),
    "search": (1, _search),
    "mapreduce": (1, _mapreduce),
    "poisson": (2, _poisson),
    "convergence": (1, _convergence),
    "mice": (2, _mice),
    "mixed": (3, _mixed),
}
"""Workloads, and how often each is drawn."""

PAIRS = ("long", "ON/OFF", "mice", "mixed")
"""Those that go between pairs of hosts, too; the others have one receiver."""
