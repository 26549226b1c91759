"""What all tests share."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

# What a shell starts with `&` ignores Ctrl-C, and so would every command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A store of results that begins empty: no test finds what an earlier run of the tests or a user kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FANIN_STORE", str(tmp_path_factory.mktemp("store")))
        yield
