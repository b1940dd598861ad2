import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from arrow_variants import Aio, Sync, address, busy_hub, hub, kept, scope, server, text

__all__ = ["address", "busy_hub", "hub", "kept", "scope", "server", "text"]


@pytest.fixture(params=["sync", "aio"])
def variant(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "sync":
        yield Sync()
        return
    with asyncio.Runner() as runner:
        yield Aio(runner.run)
