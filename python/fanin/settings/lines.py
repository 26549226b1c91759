"""What to type to try a candidate on hosts, and to take it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any

from fanin import _native
from fanin.settings import shell
from fanin.settings.candidates import Candidate
from fanin.settings.declared import KNOBS, End, goes_with_floor
from fanin.settings.deployable import BOTH_ENDS, COMMAND, LIBRARY, WIRE, Deployment, deployment
from fanin.settings.hosts import BY_OPTION
from fanin.settings.plan import Plan, Twin

CONGESTION_CONTROL = "net.ipv4.tcp_congestion_control"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to type to try an algorithm, and to take it back.

    Attributes
    ----------
    cc : str
        The algorithm.
    hosts : str
        Where the lines are typed.
    needs : tuple of str
        What it needs besides, one sentence each.
    trial : tuple of str
        Shell lines for a server that give it to new connections with the aggregator alone.
    undo : tuple of str
        Lines that take `trial` back: to what the host had, which `trial` saves.
    everywhere, undo_everywhere : str
        The line that gives it to all new connections of a server, as far as sysctls can, and the line that takes that back.
    check : str
        A line that shows whether it is in use.
    at_aggregator, undo_at_aggregator : tuple of str
        The aggregator's own lines, and what takes them back; empty where nothing is set there.
    plan : Plan or None
        The same for ``fanin-host apply``; None where an application is started again.
    """

    cc: str
    hosts: str
    needs: tuple[str, ...]
    trial: tuple[str, ...]
    undo: tuple[str, ...]
    everywhere: str
    undo_everywhere: str
    check: str
    at_aggregator: tuple[str, ...] = ()
    undo_at_aggregator: tuple[str, ...] = ()
    plan: Plan | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it stands in JSON."""
        return {
            "cc": self.cc,
            "hosts": self.hosts,
            "needs": list(self.needs),
            "trial": list(self.trial),
            "undo": list(self.undo),
            "at_aggregator": list(self.at_aggregator),
            "undo_at_aggregator": list(self.undo_at_aggregator),
            "everywhere": self.everywhere,
            "undo_everywhere": self.undo_everywhere,
            "check": self.check,
        }


def _needed(cc: str, how: Deployment, mark: str | None) -> list[str]:
    """What has to hold on switches and at both ends for `cc` to work, a sentence each."""
    needs: list[str] = []
    if _native.needs_ecn(cc):
        at = f" above {mark} in the queue (K, `mark` in a rack file)" if mark else ""
        needs.append(
            f"Switches mark packets (ECN){at}: on every port of the path, at the queue as it is now, not at its average "
            "(as WRED: minimum and maximum threshold both at that value, probability 100%)."
        )
    if cc in BOTH_ENDS:
        needs.append(f"Both ends run {cc}: its receiver tells the sender which packets were marked.")
    if how.shim:
        needs.append(
            f"{COMMAND} stands for what starts the server: it is started again with the library in front (`make linux` builds it; docs/linux.md), and "
            "to take it back once more without."
        )
    return needs


def recommendation(
    cc: str,
    *,
    aggregator: str,
    now: str | None,
    mark: str | None,
    servers: Sequence[str] = (),
    quickack: bool = False,
    route: Mapping[str, str] | None = None,
    route_of_aggregator: Mapping[str, str] | None = None,
    load: Sequence[str] = (),
    environment: Sequence[str] = (),
) -> Recommendation | None:
    """The lines that try `cc`; None when no host can run it.

    Parameters
    ----------
    cc : str
        Algorithm.
    aggregator : str
        Address of the host that the responses go to.
    now : str or None
        The congestion control that the hosts run, as far as known.
    mark : str or None
        The rack's marking threshold, for an algorithm that needs marks.
    servers : sequence of str
        Addresses of the hosts that answer; ``SERVER`` stands for them where they are not known.
    quickack : bool
        It was simulated with a receiver that acknowledges every packet.
    route, route_of_aggregator : mapping, optional
        Options of ``ip route`` besides, such as ``{"rto_min": "5ms"}``: the servers', and the aggregator's.
    load : sequence of str
        Parameters of the twin, as ``fanin-host load --param`` takes them.
    environment : sequence of str
        What the library in front of the application reads, such as ``FANIN_TCPRAND_MIN=200``.

    Examples
    --------
    >>> told = recommendation("bbr", aggregator="10.0.0.1", now="cubic", mark=None)
    >>> for line in told.trial:
    ...     print(line.split(" $(")[0])
    grep -qw bbr /proc/sys/net/ipv4/tcp_available_congestion_control || modprobe tcp_bbr
    mkdir -p /run/fanin; [ -e /run/fanin/10.0.0.1 ] || ip route save exact 10.0.0.1 > /run/fanin/10.0.0.1
    ip route replace 10.0.0.1 congctl bbr
    >>> told.undo[0].split(" && ")[1:]
    ['ip route del 10.0.0.1', 'ip route restore < /run/fanin/10.0.0.1', 'rm /run/fanin/10.0.0.1']
    """
    how = deployment(cc)
    if how is None:
        return None
    v6 = ip_address(aggregator).version == 6
    asked = dict(route or {})
    both = cc in BOTH_ENDS
    kernel = cc.partition("+")[2] if how.shim else cc
    # A library in front of what hosts run already needs neither module nor route.
    changes_tcp = not how.shim or kernel != now
    loads = [shell.load(how.kernel_name)] if how.module and changes_tcp else []
    if how.twin and changes_tcp:
        loads = [" ".join([f"fanin-host load {kernel}", *(f"--param {one}" for one in load)])]
    unload = [f"fanin-host unload {kernel}"] if how.twin and changes_tcp else []
    needs = _needed(cc, how, mark)
    options = {"congctl": how.kernel_name, **asked} if changes_tcp or asked else {}
    trial = [*loads, *shell.route([aggregator], options)] if options else []
    undo = [shell.route_undo([aggregator]), *unload] if options else []
    if how.shim:
        trial = [*trial, " ".join([f"LD_PRELOAD={LIBRARY}", *environment, COMMAND])]
        undo = [COMMAND, *undo]
    there = {**({"congctl": how.kernel_name} if both else {}), **(route_of_aggregator or {})}
    if quickack:
        there["quickack"] = "1"
        needs.append(f"{aggregator} acknowledges every packet (`quickack 1`), as it was simulated.")
    if "rto_min" in there:
        needs.append(
            f"The floor is set at both ends: {aggregator} delays its ACKs by less than its own floor (Linux 6.7; before, set `quickack 1` there "
            "instead), else servers would send answers again that have arrived."
        )
    if "rto_min" in asked and goes_with_floor(asked.get("initcwnd")):
        needs.append(
            f"The initial window goes with the floor: Linux restarts from it after a pause longer than its timer, which the pauses of this service now "
            f"are. {asked['initcwnd']} segments hold a whole answer, so that ordinary requests are sent as they are today."
        )
    peers = [one for one in servers if (ip_address(one).version == 6) == v6] or ["SERVER"]
    if there and peers == ["SERVER"]:
        needs.append(f"SERVER stands for each server's address, in the lines for {aggregator}.")
    sysctls = {**({CONGESTION_CONTROL: how.kernel_name} if changes_tcp else {}), **_sysctls(asked)}
    needs += _on_all_connections(asked, there, aggregator)
    return Recommendation(
        cc=cc,
        hosts="each server",
        needs=tuple(needs),
        trial=tuple(trial),
        undo=tuple(undo),
        everywhere=_everywhere(sysctls or {CONGESTION_CONTROL: how.kernel_name}),
        undo_everywhere=shell.sysctl_undo(list(sysctls) or [CONGESTION_CONTROL]),
        check=f"ss -ti dst '[{aggregator}]'" if v6 else f"ss -ti dst {aggregator}",
        at_aggregator=(*(loads if both else ()), *shell.route(peers, there, v6=v6)) if there else (),
        undo_at_aggregator=(shell.route_undo(peers, v6=v6), *(unload if both else ())) if there else (),
        plan=None if how.shim else Plan(aggregator, tuple(servers), options, there, _twin(kernel, how, load)),
    )


RTO_MIN_SYSCTL = "net.ipv4.tcp_rto_min_us"
"""The floor of connections whose route has none; delayed ACKs go by it too (tcp_output.c, `tcp_delack_max`)."""


def _sysctls(options: Mapping[str, str]) -> dict[str, str]:
    """Those options of routes that a sysctl sets for all connections of a host.

    Examples
    --------
    >>> _sysctls({"rto_min": "5ms", "initcwnd": "4"})
    {'net.ipv4.tcp_rto_min_us': '5000'}
    """
    floor = options.get("rto_min")
    return {} if floor is None else {RTO_MIN_SYSCTL: f"{1e6 * _native.quantity('time', floor, 'rto_min'):.0f}"}


def _everywhere(values: Mapping[str, str]) -> str:
    """The line that sets sysctls; where the kernel lacks the one of the floor it says so and changes nothing."""
    line = shell.sysctl(values)
    return f"ls /proc/sys/{RTO_MIN_SYSCTL.replace('.', '/')} && {{ {line}; }}" if RTO_MIN_SYSCTL in values else line


def _on_all_connections(asked: Mapping[str, str], there: Mapping[str, str], aggregator: str) -> list[str]:
    """What the lines for all of a host's connections need besides."""
    said = []
    if "rto_min" in asked:
        said.append(
            f"For all connections the floor is a sysctl, `{RTO_MIN_SYSCTL}`, since Linux {BY_OPTION['tcp_rto_min_us'].since}; before, put `rto_min "
            f"{asked['rto_min']}` on each route that they use, such as `default`."
        )
        if "rto_min" in there:
            said.append(
                f"The line for all connections is typed at {aggregator}, too, and so is the one that takes it back."
            )
    without = " ".join(f"{name} {value}" for name, value in asked.items() if name != "rto_min")
    if without:
        said.append(f"No sysctl sets `{without}`: for all connections, put it on each route that they use.")
    return said


def _twin(name: str, how: Deployment, load: Sequence[str]) -> Twin | None:
    if not how.twin:
        return None
    params = {key: int(value) for key, _, value in (one.partition("=") for one in load)}
    return Twin(name, how.kernel_name, params)


def load_parameters(cc: str, rack: Mapping[str, str]) -> list[str]:
    """What a twin is told when it is loaded, of the rack that it was simulated on.

    Examples
    --------
    >>> load_parameters("trim", {"rate": "10Gbps", "receiver_rate": "1Gbps"}), load_parameters("cubic", {"rate": "1Gbps"})
    (['rate_pps=81274'], [])
    """
    from fanin import _native

    rate = rack.get("receiver_rate", rack.get("rate"))
    if "trim" not in cc.split("+") or rate is None:
        return []
    return [f"rate_pps={_native.quantity('rate', rate, 'rack.rate') / 8 / WIRE:.0f}"]


def how_to(
    candidate: Candidate,
    *,
    aggregator: str,
    now: str,
    rack: Mapping[str, Any] | None = None,
    servers: Sequence[str] = (),
) -> Recommendation | None:
    """The lines that try a candidate on hosts and take it back; None when no host can run it.

    Parameters
    ----------
    candidate : Candidate
        What to try.
    aggregator : str
        Address of the host that the responses go to.
    now : str
        The congestion control that the hosts run.
    rack : mapping, optional
        The ``[rack]`` table.
    servers : sequence of str
        Addresses of the hosts that answer, for the aggregator's lines.

    Examples
    --------
    >>> floor = Candidate("cubic", (("stack.min_rto", "5ms"),))
    >>> told = how_to(floor, aggregator="10.0.0.1", now="cubic", servers=["10.0.0.2", "10.0.0.3"])
    >>> told.trial[-1].split("$")[0], told.at_aggregator[-1].split("$(")[0]
    ('ip route replace 10.0.0.1 congctl cubic rto_min 5ms ', 'for h in 10.0.0.2 10.0.0.3; do ip route replace $h rto_min 5ms ')
    >>> how_to(Candidate("tcprand+cubic", (("cc.rand_rmin", "200B"),)), aggregator="10.0.0.1", now="cubic").trial
    ('LD_PRELOAD=target/release/libfanin_tcprand.so FANIN_TCPRAND_MIN=200 SERVER_COMMAND',)
    """
    values, network = dict(candidate.settings), rack or {}
    at = {
        place: [k for k in KNOBS if k.place == place and k.key in values] for place in ("route", "load", "environment")
    }
    mark = values.get("rack.receiver_mark", values.get("rack.mark", network.get("receiver_mark", network.get("mark"))))
    found = recommendation(
        candidate.cc,
        aggregator=aggregator,
        now=now,
        mark=str(mark) if mark is not None else None,
        quickack=_native.needs_quickack(candidate.cc),
        servers=servers,
        route={k.option: values[k.key] for k in at["route"] if k.end in {End.SERVERS, End.BOTH}},
        route_of_aggregator={k.option: values[k.key] for k in at["route"] if k.end in {End.AGGREGATOR, End.BOTH}},
        load=[
            *load_parameters(candidate.cc, {key: str(value) for key, value in network.items()}),
            *(f"{k.option}={1e6 * _native.quantity('time', values[k.key], k.key):.0f}" for k in at["load"]),
        ],
        environment=[f"{k.option}={values[k.key].removesuffix('B')}" for k in at["environment"]],
    )
    alpha = values.get("rack.shared_alpha")
    if found is None or alpha is None:
        return found
    need = f"The switch's dynamic threshold (alpha) is {alpha}: one port may take {alpha} times the free shared buffer."
    return replace(found, needs=(*found.needs, need))
