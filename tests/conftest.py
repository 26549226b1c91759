"""What all tests share."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ALONE = (
    "test_deploy_lines",
    "test_laboratory",
    "test_linux",
    "test_linux_plans",
    "test_real_racks",
    "test_tcprand_library",
    "test_testbed",
)
"""Files whose tests use this machine's kernel or run in real time: neither two of them nor another test may run meanwhile."""

# What a shell starts with `&` ignores Ctrl-C, and so would every command that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A store of results that begins empty, one for all processes: no test finds what an earlier run of the tests or a user kept."""
    mine = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FANIN_STORE", str((mine.parent if "PYTEST_XDIST_WORKER" in os.environ else mine) / "store"))
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark what `make test` runs after the others, one at a time."""
    for item in items:
        if item.path.stem in ALONE:
            item.add_marker(pytest.mark.alone)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's Chromium, headless, never a download. Not longer than a file's tests: it leaves a loop and threads in the process."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Chromium refuses its sandbox to root; the pages are our own.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
