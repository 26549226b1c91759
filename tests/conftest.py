"""What all tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A store of results that begins empty: no test finds what an earlier run of the tests or a user kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FANIN_STORE", str(tmp_path_factory.mktemp("store")))
        yield
