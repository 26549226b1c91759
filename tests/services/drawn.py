"""Services drawn at random: combinations that no one chose, for a blind look at the reading."""

from __future__ import annotations

import random

from .patterns import Service

NAME = "drawn "
"""What the name of a drawn service begins with; its number follows."""

INCAST = "incast "
"""What the name of a drawn fan-in begins with: one user asks every server at once, through a buffer that may be too small for it."""

INCASTS = 16
"""So many of them are tried in real time."""

PROTOCOLS = {
    "nginx": ("http", "https"),
    "own": ("chunked", "binary"),
    "memcached": ("memcached",),
    "redis": ("redis", "mget"),
    "grpc": ("grpc",),
}
SHAPES = {"fan": 3, "some": 2, "stages": 3, "again": 2, "semaphore": 3}
POOLS = {"own": 4, "shared": 2, "new": 1}
SIZES_KIB = ((1, 2), (4, 4), (20, 20), (1, 60), (50, 50))


def service(number: int) -> Service:
    """The service of this number; the same number is the same service.

    The requests are about as long apart as they take, so that the aggregator is busy and not overrun.
    """
    draw = random.Random(number)

    def one(weights: dict[str, int]) -> str:
        return draw.choices(list(weights), list(weights.values()))[0]

    server = draw.choice(list(PROTOCOLS))
    protocol = draw.choice(PROTOCOLS[server])
    count = draw.choice((4, 6, 8, 12))
    shape, sizes, users = one(SHAPES), draw.choice(SIZES_KIB), draw.choice((1, 1, 2, 4))
    pool = one(POOLS) if server in ("nginx", "own") else draw.choice(("own", "shared"))
    mbps = draw.choice((200, 300, 500))
    takes_ms = count * (sizes[0] + sizes[1]) / 2 * 8.2 / mbps
    besides = ("", "", "", "health checks", "long poll") if server == "own" or protocol == "http" else ("",)
    return Service(
        f"{NAME}{number}",
        f"{shape} over {count} servers",
        shape=shape,
        k=draw.randint(2 if shape == "some" else 1, max(2, count // 2)),
        server=server,
        protocol=protocol,
        servers=count,
        users=users,
        pool=pool,
        requests=150 * (1 if users == 1 else 2),
        sizes_kib=sizes,
        pause_ms=(2.0, 5.0 + 2.0 * users * takes_ms),
        beside=draw.choice(besides),
        snaplen=draw.choice((256, 256, 96)),
        offload=draw.random() < 0.75,
        mbps=mbps,
        buffer=draw.choice((60, 100, 200)),
    )


def incast(number: int) -> Service:
    """The fan-in of this number; the same number is the same service on the same rack."""
    draw = random.Random(f"{INCAST}{number}")
    size = draw.choice((12, 16, 24, 32, 50, 64))
    return Service(
        f"{INCAST}{number}",
        "all servers at once",
        servers=draw.choice((5, 6, 8, 10, 12, 16)),
        sizes_kib=(size, size) if draw.random() < 0.7 else (size // 2, 2 * size),
        requests=200,
        pause_ms=(draw.choice((2.0, 5.0)), draw.choice((3.0, 10.0))),
        offload=draw.random() < 0.75,
        mbps=draw.choice((100, 150, 200, 300, 400)),
        buffer=draw.choice((24, 32, 48, 64, 100)),
        snaplen=96,
    )
