"""Calls that are interrupted leave nothing behind: short runs of `python tools/campaign.py`."""

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from sqlalchemy.ext.asyncio import create_async_engine

import campaign
from backends import BACKENDS, Backend, Place, Variant
from campaigns import IS_CAMPAIGN, rounds, seed
from eventhub_checkpoints.aio.sql import SqlCheckpointStore
from eventhub_checkpoints.stores.sql import sqlite as _sqlite
from interruptions import (
    InterruptedCallError,
    LeftBehindError,
    cancelled,
    raised_at,
    run_signals,
    run_steps,
)
from waiting import LIMIT

pytestmark = [
    pytest.mark.waits,
    # A signal may come in SQLAlchemy's pool before it has noted a new connection. Nothing refers to
    # that one any more: psycopg closes it when it is deleted, and warns.
    pytest.mark.filterwarnings("ignore:.* was deleted while still open:ResourceWarning"),
]

SEED = seed(7)
LINES, STEPS = rounds(100, 1), rounds(4, 1)
"""Calls are interrupted at one line, or at one step, of about so many."""
INTERRUPTED = rounds(200, 20_000)
BUSY_SECONDS = 2.0
"""Seconds that a call waits for a lock that is never released."""
ERRORS = [InterruptedCallError, KeyboardInterrupt]
"""In turn, at one line after another."""
QUICK = "memory", "sqlite", "redis"
each_backend = pytest.mark.parametrize(
    "backend",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in BACKENDS],
    indirect=True,
)
"""What a call leaves depends on the driver, so on every backend; a call to most takes its time."""

Tell = Callable[[str, str], None]


@each_backend
def test_a_call_cancelled_at_any_step_leaves_nothing(
    backend: Backend, place: Place, tell: Tell
) -> None:
    seen = run_steps(place, "aio", cancelled, SEED, stride=STEPS, patience=LIMIT)
    assert seen.total() > 0
    tell("interruptions", f"{backend.name}: cancelled at {seen.total()} steps of {len(seen)} calls")


@each_backend
@pytest.mark.parametrize("errors", [ERRORS, ERRORS[::-1]] if IS_CAMPAIGN else [ERRORS])
def test_a_call_interrupted_at_a_line_leaves_nothing(
    backend: Backend, place: Place, errors: list[type[BaseException]], tell: Tell
) -> None:
    seen = run_steps(place, "sync", raised_at(*errors), SEED, stride=LINES, patience=LIMIT)
    assert seen.total() > len(seen)
    tell("interruptions", f"{backend.name}: raised at {seen.total()} lines of {len(seen)} calls")


@pytest.mark.long
def test_calls_interrupted_by_a_signal_leave_nothing(
    backend: Backend, place: Place, tell: Tell
) -> None:
    seen = run_signals(place, SEED, INTERRUPTED, LIMIT)
    assert seen.total() == INTERRUPTED
    tell("interruptions", f"{backend.name}: {INTERRUPTED} calls interrupted by a signal handler")


def test_a_ready_engine_of_sqlite_keeps_no_lock_either(
    servers: Callable[[str], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    with servers("sqlite").place() as place:
        engine = create_async_engine(place.url.replace("sqlite:", "sqlite+aiosqlite:"))
        own = place.open

        def opened(variant: Variant, **settings: Any) -> Any:
            if variant == "aio":
                return SqlCheckpointStore(engine, **settings)
            return own(variant, **settings)

        monkeypatch.setattr(place, "open", opened)
        seen = run_steps(place, "aio", cancelled, SEED, stride=rounds(12, 1), patience=LIMIT)
        assert seen.total() > 0
        asyncio.run(engine.dispose())


@pytest.mark.long
def test_a_connection_that_keeps_its_lock_is_caught(
    servers: Callable[[str], Backend], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite.LettingGo, "close", sqlite3.Connection.close)
    # On a busy machine the time limit of the call may end before SQLite's busy timeout.
    kept = "SQLITE_BUSY|no answer in time"
    with servers("sqlite").place() as place:
        opened = partial(place.open, operation_timeout=BUSY_SECONDS, write_timeout=BUSY_SECONDS)
        monkeypatch.setattr(place, "open", opened)
        with pytest.raises(LeftBehindError, match=kept):
            run_steps(place, "aio", cancelled, SEED)


def test_the_campaign_prints_its_seed_and_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    assert campaign.main(["cancel", "--backend", "memory", "--seed", "7"]) == 0
    printed = capsys.readouterr().out
    assert "cancel: seed 7, 1 rounds" in printed
    assert "claim" in printed
