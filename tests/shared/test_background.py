"""Background thread of the sync variant, where a stop and a start meet."""

import threading
from typing import Any

import pytest

from eventhub_checkpoints._shared._sync.background import Background
from waiting import eventually


def test_a_stop_between_the_creation_of_the_thread_and_its_start_wins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[None] = []
    started: list[threading.Thread] = []

    def run_due() -> float:
        looks.append(None)
        return 3600

    background = Background(run_due)
    start = threading.Thread.start

    def after_a_stop(thread: threading.Thread, *arguments: Any) -> None:
        background.stop(1)
        started.append(thread)
        start(thread, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", after_a_stop)
        background.start()
    [thread] = started
    eventually(lambda: not thread.is_alive())
    assert not background.is_alive
    assert looks == []
