"""The services of the laboratory: what each one's aggregator does for a request of its user."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Service:
    """One service.

    Attributes
    ----------
    name, what : str
        Its name, and what a request of its user is.
    shape : str
        How the calls of a request follow each other: a method of :class:`tests.services.aggregator.Aggregator`, with `k` as its number.
    server, protocol : str
        Who answers (:mod:`tests.services.servers`) and how it is spoken to (:mod:`tests.services.clients`).
    users, pool : int, str
        How many ask at once, on connections of their `own`, on any free one (`shared`), or on a `new` one for each call.
    sizes_kib, pause_ms : (int, int)
        Smallest and largest answer; a user's shortest pause, and the mean of what comes on top, which is exponential.
    beside : str
        What else the aggregator does: `long poll`, `polls` (that are answered at once), `health checks`, `new health checks`, `pooled health checks`,
        `transfer`.
    slow : float
        Share of the answers that the server holds back for 60 to 90 ms.
    """

    name: str
    what: str
    shape: str = "fan"
    k: int = 0
    server: str = "nginx"
    protocol: str = "http"
    servers: int = 12
    users: int = 1
    pool: str = "own"
    requests: int = 150
    sizes_kib: tuple[int, int] = (20, 20)
    pause_ms: tuple[float, float] = (5.0, 5.0)
    beside: str = ""
    slow: float = 0.0
    snaplen: int = 256
    offload: bool = True
    mbps: int = 300
    buffer: int = 100


SERVICES = (
    Service("fan", "all servers at once"),
    Service("sizes", "all servers at once, answers of 1 to 60 KiB", sizes_kib=(1, 60), requests=120),
    Service("shards", "4 of the 12 servers, drawn each time", shape="some", k=4, sizes_kib=(50, 50)),
    Service("token", "in one of ten a server, then the 8 others", shape="token", k=10, servers=9),
    Service("two stages", "8 servers, then the other 4", shape="stages", k=8),
    Service("three stages", "4 servers, then 4, then 4", shape="stages", k=4),
    Service(
        "again, no pauses",
        "all servers, then all again, and so on",
        shape="again",
        k=8,
        servers=8,
        sizes_kib=(8, 8),
        pause_ms=(0, 0.02),
    ),
    Service("again", "all servers, then 3 of them again", shape="again", k=3, sizes_kib=(8, 8)),
    Service("chain", "5 servers, one after another", shape="stages", k=1, servers=5),
    Service(
        "row", "one server, 5 calls one after another on its connection", shape="row", k=5, servers=1, sizes_kib=(8, 8)
    ),
    Service("rows", "4 servers, each asked 3 times, one call after another", shape="row", k=3, servers=4),
    Service(
        "shared calls",
        "all servers at once; what another user waits for already is not asked again",
        shape="joined",
        users=3,
        servers=8,
        pause_ms=(2, 8),
        requests=240,
    ),
    Service("semaphore", "all servers, at most 4 at a time", shape="semaphore", k=4),
    Service(
        "4 users",
        "all servers at once; each user has connections of its own",
        users=4,
        servers=8,
        pause_ms=(5, 60),
        requests=300,
    ),
    Service(
        "4 users, semaphore",
        "all servers, at most 3 at a time",
        shape="semaphore",
        k=3,
        users=4,
        servers=8,
        pause_ms=(5, 60),
        requests=240,
    ),
    Service(
        "shared pool",
        "all servers at once, on any free connection",
        users=2,
        pool="shared",
        pause_ms=(5, 25),
        requests=240,
    ),
    Service(
        "shared pool, 4 users",
        "all servers at once, on any free connection",
        users=4,
        pool="shared",
        servers=8,
        sizes_kib=(16, 16),
        pause_ms=(10, 60),
        requests=300,
    ),
    Service(
        "shared pool, stages",
        "4 servers, then the other 4, on any free connection",
        shape="stages",
        k=4,
        users=2,
        pool="shared",
        servers=8,
        sizes_kib=(16, 16),
        pause_ms=(5, 40),
        requests=240,
    ),
    Service(
        "retry",
        "all servers at once; after 40 ms a call is given up and tried anew",
        shape="retried",
        k=40,
        server="own",
        servers=8,
        slow=0.02,
        sizes_kib=(12, 12),
    ),
    Service(
        "hedge",
        "6 servers; after 30 ms the next server is asked too, the first answer counts",
        shape="hedged",
        k=30,
        server="own",
        servers=6,
        slow=0.03,
        sizes_kib=(16, 16),
    ),
    Service(
        "quorum",
        "5 of 8 servers' answers",
        shape="quorum",
        k=5,
        server="own",
        servers=8,
        slow=0.06,
        sizes_kib=(12, 12),
        pause_ms=(100, 10),
    ),
    Service(
        "quorum, short pauses",
        "5 of 8 servers' answers",
        shape="quorum",
        k=5,
        server="own",
        servers=8,
        slow=0.06,
        sizes_kib=(12, 12),
        pause_ms=(5, 10),
    ),
    Service("long poll", "all servers at once", server="own", servers=8, sizes_kib=(16, 16), beside="long poll"),
    Service("polls at once", "all servers at once", servers=8, sizes_kib=(16, 16), beside="polls"),
    Service("health checks", "all servers at once", beside="health checks", servers=8),
    Service("new health checks", "all servers at once", beside="new health checks", servers=8),
    Service("pooled health checks", "all servers at once", beside="pooled health checks", servers=8),
    Service("transfer", "all servers at once", beside="transfer", servers=8, sizes_kib=(8, 8)),
    Service("new connections", "all servers at once, each on a new connection", pool="new"),
    Service(
        "new connections, 2 users",
        "all servers at once, each on a new connection",
        pool="new",
        users=2,
        servers=8,
        pause_ms=(5, 40),
        requests=200,
    ),
    Service("pipelined", "3 answers of each server, asked for at once", shape="pipelined", k=3, sizes_kib=(6, 6)),
    Service("chunked", "all servers at once, answers in chunks", server="own", protocol="chunked", servers=8),
    Service("tls", "all servers at once", protocol="https"),
    Service(
        "tls, 4 users",
        "all servers at once; each user has connections of its own",
        protocol="https",
        users=4,
        servers=8,
        pause_ms=(5, 60),
        requests=300,
    ),
    Service("tls, two stages", "8 servers, then the other 4", shape="stages", k=8, protocol="https"),
    Service(
        "multi-get", "a get of 12 keys at each server", server="memcached", protocol="memcached", sizes_kib=(12, 12)
    ),
    Service("redis", "a GET at each server", server="redis", protocol="redis", sizes_kib=(16, 16)),
    Service("redis mget", "a MGET of 12 values at each server", server="redis", protocol="mget", sizes_kib=(12, 12)),
    Service(
        "redis pipeline",
        "4 GETs written at once to each server",
        shape="pipelined",
        k=4,
        server="redis",
        protocol="redis pipeline",
        sizes_kib=(4, 4),
    ),
    Service("grpc", "a call to each server", server="grpc", protocol="grpc", servers=6, sizes_kib=(50, 50)),
    Service(
        "grpc, 3 calls",
        "3 calls at once on the channel to each server",
        shape="calls",
        k=3,
        server="grpc",
        protocol="grpc",
        servers=6,
        sizes_kib=(16, 16),
    ),
    Service(
        "grpc, 2 users",
        "a call to each server on shared channels",
        server="grpc",
        protocol="grpc",
        servers=6,
        users=2,
        sizes_kib=(8, 8),
        pause_ms=(5, 25),
        requests=200,
    ),
    Service(
        "binary", "all servers at once, in a protocol that nothing knows", server="own", protocol="binary", servers=8
    ),
    Service(
        "binary, sizes",
        "the same, answers of 1 to 60 KiB",
        server="own",
        protocol="binary",
        servers=8,
        sizes_kib=(1, 60),
    ),
    Service(
        "binary, semaphore",
        "the same, at most 3 at a time",
        shape="semaphore",
        k=3,
        server="own",
        protocol="binary",
        servers=8,
    ),
    Service("fan, snaplen 96", "all servers at once", snaplen=96),
    Service("tls, snaplen 96", "all servers at once", protocol="https", snaplen=96),
    Service(
        "grpc, snaplen 96",
        "3 calls at once on the channel to each server",
        shape="calls",
        k=3,
        server="grpc",
        protocol="grpc",
        servers=6,
        sizes_kib=(16, 16),
        snaplen=96,
    ),
    Service(
        "multi-get, snaplen 96",
        "a get of 12 keys at each server",
        server="memcached",
        protocol="memcached",
        sizes_kib=(12, 12),
        snaplen=96,
    ),
    Service("fan, no offload", "all servers at once", offload=False),
    Service("tls, no offload", "all servers at once", protocol="https", offload=False),
    Service("semaphore, no offload", "all servers, at most 4 at a time", shape="semaphore", k=4, offload=False),
)


def named(name: str) -> Service:
    """The service of this name."""
    from . import drawn

    if name.startswith(drawn.NAME):
        return drawn.service(int(name.removeprefix(drawn.NAME)))
    if name.startswith(drawn.INCAST):
        return drawn.incast(int(name.removeprefix(drawn.INCAST)))
    return next(service for service in SERVICES if service.name == name)
