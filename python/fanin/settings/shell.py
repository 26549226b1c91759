"""Lines for a shell on a host: each saves what it is about to change, once, and another goes back to exactly that.

What a host had lies in ``/run/fanin``, which is gone with a reboot, as the settings are. To type a line twice saves nothing anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import ip_address

STATE = "/run/fanin"
"""Where a host's former settings lie while something is tried."""


def _family(peer: str, v6: bool | None = None) -> str:
    return "-6 " if (ip_address(peer).version == 6 if v6 is None else v6) else ""


def _for_each(peers: Sequence[str], body: str) -> str:
    """A line for each of some peers: `{}` in it is the peer."""
    if len(peers) == 1:
        return body.replace("{}", peers[0])
    return f"for h in {' '.join(peers)}; do {body.replace('{}', '$h')}; done"


def route(peers: Sequence[str], options: Mapping[str, str], *, v6: bool | None = None) -> tuple[str, ...]:
    """Lines that give new connections with some peers options of their routes; the route that was used keeps all else (via, src, mtu, ...).

    Parameters
    ----------
    peers : sequence of str
        Addresses of one family.
    options : mapping
        As ``ip route`` takes them, such as ``{"rto_min": "5ms"}``.
    v6 : bool, optional
        The family, where `peers` are no addresses but stand for some.

    Examples
    --------
    >>> for line in route(["10.0.0.1"], {"rto_min": "5ms"}):
    ...     print(line.split(" $(")[0])
    mkdir -p /run/fanin; [ -e /run/fanin/10.0.0.1 ] || ip route save exact 10.0.0.1 > /run/fanin/10.0.0.1
    ip route replace 10.0.0.1 rto_min 5ms
    """
    ip = f"ip {_family(peers[0], v6)}"
    # `ip route show` writes what `ip route add` does not take: the prefix, states of the link, and `rto_min lock`.
    drop = "s/^[^ ]+//; s/ (linkdown|dead)|\\\\//g; " + f"s/ ({'|'.join(options)})( lock)? [^ ]+//g"
    if len(options) == 1:
        drop = drop.replace(f"({next(iter(options))})", next(iter(options)))
    if "rto_min" not in options:
        drop += "; s/rto_min lock/rto_min/"
    wanted = " ".join(f"{name} {value}" for name, value in options.items())
    save = f"[ -e {STATE}/{{}} ] || {ip}route save exact {{}} > {STATE}/{{}}"
    # The options come first: where a route has several next hops, those are last.
    change = f"{ip}route replace {{}} {wanted} $({ip}-o route get fibmatch {{}} | sed -E '{drop}')"
    return f"mkdir -p {STATE}; {_for_each(peers, save)}", _for_each(peers, change)


def route_undo(peers: Sequence[str], *, v6: bool | None = None) -> str:
    """The line that takes :func:`route` back.

    Examples
    --------
    >>> route_undo(["10.0.0.1"])
    '[ -e /run/fanin/10.0.0.1 ] && ip route del 10.0.0.1 && ip route restore < /run/fanin/10.0.0.1 && rm /run/fanin/10.0.0.1'
    """
    ip = f"ip {_family(peers[0], v6)}"
    kept = f"{STATE}/{{}}"
    return _for_each(peers, f"[ -e {kept} ] && {ip}route del {{}} && {ip}route restore < {kept} && rm {kept}")


def sysctl(values: Mapping[str, str]) -> str:
    """The line that sets sysctls of a host.

    Examples
    --------
    >>> sysctl({"net.ipv4.tcp_ecn": "1"})
    'mkdir -p /run/fanin; [ -e /run/fanin/net.ipv4.tcp_ecn ] || sysctl -n net.ipv4.tcp_ecn > /run/fanin/net.ipv4.tcp_ecn; sysctl -w net.ipv4.tcp_ecn=1'
    """
    saves = [f"[ -e {STATE}/{name} ] || sysctl -n {name} > {STATE}/{name}" for name in values]
    words = " ".join(f"{name}={_quoted(value)}" for name, value in values.items())
    return "; ".join([f"mkdir -p {STATE}", *saves, f"sysctl -w {words}"])


def sysctl_undo(names: Sequence[str]) -> str:
    """The line that takes :func:`sysctl` back.

    Examples
    --------
    >>> sysctl_undo(["net.ipv4.tcp_ecn"])
    'sysctl -w net.ipv4.tcp_ecn="$(cat /run/fanin/net.ipv4.tcp_ecn)" && rm /run/fanin/net.ipv4.tcp_ecn'
    """
    words = " ".join(f'{name}="$(cat {STATE}/{name})"' for name in names)
    return f"sysctl -w {words} && rm {' '.join(f'{STATE}/{name}' for name in names)}"


def device(peer: str, option: str, value: str) -> str:
    """The line that sets an option of the device towards a peer, as ``ip link set`` takes and ``ip -d link`` shows it.

    Examples
    --------
    >>> device("10.0.0.1", "gso_max_size", "16384").startswith("mkdir -p /run/fanin; d=$(ip -o route get 10.0.0.1")
    True
    """
    kept = f"{STATE}/$d.{option}"
    save = f"[ -e {kept} ] || ip -d link show dev $d | grep -oE '{option} [0-9]+' > {kept}"
    return f"mkdir -p {STATE}; {_device_of(peer)}; {save}; ip link set dev $d {option} {value}"


def device_undo(peer: str, option: str) -> str:
    """The line that takes :func:`device` back."""
    kept = f"{STATE}/$d.{option}"
    return f"{_device_of(peer)}; ip link set dev $d $(cat {kept}) && rm {kept}"


def fair_queue(peer: str) -> str:
    """The line that makes fq the qdisc of the device towards a peer, where the kernel chose the one that is there."""
    kept = f"{STATE}/$d.qdisc"
    save = f"[ -e {kept} ] || tc qdisc show dev $d > {kept}"
    return f"mkdir -p {STATE}; {_device_of(peer)}; {save}; tc qdisc replace dev $d root fq"


def fair_queue_undo(peer: str) -> str:
    """The line that gives the kernel's choice back; what was there before is in the file, where it was another."""
    return f"{_device_of(peer)}; tc qdisc del dev $d root && rm {STATE}/$d.qdisc"


def load(kernel_name: str) -> str:
    """The line that loads a congestion control of Linux where it is a module that is not loaded; loaded, it does nothing by itself.

    Examples
    --------
    >>> load("bbr")
    'grep -qw bbr /proc/sys/net/ipv4/tcp_available_congestion_control || modprobe tcp_bbr'
    """
    return f"grep -qw {kernel_name} /proc/sys/net/ipv4/tcp_available_congestion_control || modprobe tcp_{kernel_name}"


def _device_of(peer: str) -> str:
    return f"d=$(ip {_family(peer)}-o route get {peer} | grep -oE 'dev [^ ]+' | cut -d' ' -f2)"


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value
