"""Errors of other code whose message raises, is huge, or quotes a secret, wherever one is shown."""

import asyncio
import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from azure.eventhub import EventData

from eventhub_checkpoints import dead_letters
from eventhub_checkpoints._shared import tracing
from eventhub_checkpoints._shared.client import Failure, failure_of, reason
from eventhub_checkpoints._shared.connection_errors import is_untrusted, why_unreached
from eventhub_checkpoints._shared.error_messages import (
    described,
    message_of,
    message_or_type,
    unmasked_message,
)
from eventhub_checkpoints._shared.secrets import LONGEST, MARGIN, masked, quoted, repeats_secret
from eventhub_checkpoints.aio import dead_letters as aio_sinks
from eventhub_checkpoints.conformance.certify import Certifier
from eventhub_checkpoints.conformance.processes import in_one_line
from eventhub_checkpoints.dead_letters.dead_letter import DeadLetter
from eventhub_checkpoints.errors import ConfigurationError, StoreError
from eventhub_checkpoints.processing.start_position import refused_position
from eventhub_checkpoints.receive import credentials
from eventhub_checkpoints.sql import DeadLetterTable
from eventhub_checkpoints.stores.azure_storage.errors import mapped
from eventhub_checkpoints.stores.connections import shows_secret
from telemetry_records import recording
from unspeakable import SHOWN, UnspeakableError

KEY = "c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0c2U="
NAMED = f"UnspeakableError: {SHOWN}"
CONTEXT = SimpleNamespace(
    fully_qualified_namespace="ns",
    eventhub_name="orders",
    consumer_group="$Default",
    partition_id="0",
)


def test_an_error_is_shown_by_its_message_and_its_type() -> None:
    assert described(ValueError("no price")) == "ValueError: no price"
    assert described(ValueError()) == message_or_type(ValueError()) == "ValueError"
    assert message_or_type(ValueError("no price")) == "no price"
    assert described(UnspeakableError()) == NAMED
    assert message_of(UnspeakableError()) == unmasked_message(UnspeakableError()) == SHOWN


@pytest.mark.parametrize(
    "show",
    [
        quoted,
        reason,
        why_unreached,
        is_untrusted,
        shows_secret,
        refused_position,
        described,
        message_or_type,
        in_one_line,
        lambda error: mapped(error, "the account"),
    ],
)
def test_an_error_that_cannot_be_shown_is_examined_as_any_other(
    show: Callable[[UnspeakableError], object],
) -> None:
    show(UnspeakableError())
    error = UnspeakableError()
    error.__cause__ = UnspeakableError()
    show(error)


def test_an_error_of_a_store_that_cannot_be_shown_is_no_answer_of_the_hub() -> None:
    assert failure_of(UnspeakableError()) is Failure.UNANSWERED


def test_a_check_that_raises_it_has_failed() -> None:
    def check() -> None:
        raise UnspeakableError

    certifier: Any = SimpleNamespace(run=lambda check: check())
    outcome = Certifier.outcome(certifier, check)  # type: ignore[arg-type]
    assert outcome.reason == NAMED


def test_a_credential_that_raises_it_is_refused_with_a_sentence() -> None:
    def make() -> Any:
        raise UnspeakableError

    kind: Any = SimpleNamespace(name="own.Credential", arguments=())
    with pytest.raises(ConfigurationError, match=r"own\.Credential cannot be created") as refused:
        credentials.call(kind, make)
    assert NAMED in str(refused.value)


def test_a_module_of_a_store_that_raises_it_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own_credential.py").write_text(
        "from unspeakable import UnspeakableError\nraise UnspeakableError\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match="own_credential") as refused:
        credentials.import_own("own_credential", "Credential")
    assert NAMED in str(refused.value)


def event() -> EventData:
    made = EventData(b"body")
    made.raw_amqp_message.annotations = {b"x-opt-sequence-number": 16, b"x-opt-offset": b"940"}
    return made


def sinks(folder: Path) -> list[tuple[Any, Any]]:
    """Each sink, and what returns its dead letters."""
    file = dead_letters.DeadLetterFile(folder / "dead-letters.jsonl")
    table = DeadLetterTable(f"sqlite:///{folder}/dead-letters.db")
    table.create()
    return [(file, file.dead_letters), (table, table.dead_letters)]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (UnspeakableError(), SHOWN),
        (ValueError("x" * 10_000_000), "x" * LONGEST + "..."),
        (ValueError(f"{'x' * (LONGEST - 6)} {KEY}"), "x" * (LONGEST - 6) + " ***"),
    ],
)
def test_every_sink_keeps_the_event(error: Exception, message: str, tmp_path: Path) -> None:
    for sink, listed in sinks(tmp_path):
        sink(CONTEXT, event(), error)
        (stored,) = listed()
        assert stored.dead_letter.error_message == message
    aio_file = aio_sinks.DeadLetterFile(tmp_path / "aio.jsonl")
    asyncio.run(aio_file(CONTEXT, event(), error))  # type: ignore[arg-type]
    assert asyncio.run(aio_file.dead_letters())[0].dead_letter.error_message == message
    sent = DeadLetter.from_event(DeadLetter.of(CONTEXT, event(), error).to_event())
    assert sent.error_message == message


def test_a_span_shows_what_can_be_shown() -> None:
    with recording() as records:
        operation = tracing.process_event(("ns", "orders", "$Default", "3"), event())
        try:
            raise StoreError("no row") from UnspeakableError()
        except StoreError as error:
            error.add_note("seen by an operator")
            operation.fail(error)
    (span,) = records.spans()
    shown = dict(span.events[0].attributes or {})
    assert shown["exception.message"] == "no row"
    stack = str(shown["exception.stacktrace"])
    assert "UnspeakableError: <exception str() failed>" in stack
    assert stack.endswith("StoreError: no row\nseen by an operator\n")


@pytest.mark.parametrize("error", [UnspeakableError(), ValueError("x" * 3_000_000)])
def test_a_span_of_any_error_is_ended(error: Exception) -> None:
    with recording() as records:
        tracing.process_event(("ns", "orders", "$Default", "3"), event()).fail(error)
    (span,) = records.spans()
    assert len(span.status.description or "") <= LONGEST + 3
    assert len(str((span.events[0].attributes or {})["exception.stacktrace"])) < 2 * LONGEST


def test_a_line_of_a_log_with_the_traceback_needs_no_message(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger("eventhub_checkpoints").warning("raised", exc_info=UnspeakableError())
    assert "".join(traceback.format_exception(UnspeakableError())) in caplog.text
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("before", range(LONGEST - 60, LONGEST + 1, 12))
@pytest.mark.parametrize(
    "secret",
    [
        KEY,
        "amqps://root:S3CR3T%@ns.servicebus.windows.net/",
        "SharedAccessKey=S3CR3T;EntityPath=orders",
        "Bearer S3CR3T",
        "eyJhbGciOiJub25lIn0.S3CR3T.c2ln",
    ],
)
def test_no_cut_splits_a_secret(before: int, secret: str) -> None:
    for after in ("", "," * 20_000, "," + "y" * 20_000, "," + "xy z" * 5000):
        text = f"{'x,' * (before // 2)}{secret}{after}"
        for shown in (masked(text), quoted(text, LONGEST)):
            assert "S3CR3T" not in shown
            assert KEY[:8] not in shown


@pytest.mark.parametrize("at", range(LONGEST + MARGIN - 60, LONGEST + MARGIN + 1, 4))
def test_no_secret_at_the_end_of_what_is_searched_comes_into_sight(at: int) -> None:
    # Everything before it is masked, so that what follows moves to the front.
    url = "amqps://root:" + "p" * 299 + "@,"
    text = (url * (at // len(url))).ljust(at, ",") + KEY + "," * 20_000
    assert KEY[:8] not in masked(text)
    assert len(masked(text)) <= LONGEST + 3


def test_a_message_that_is_too_long_to_search_counts_as_one_with_a_secret() -> None:
    assert not repeats_secret("x" * 1000)
    assert repeats_secret(f"password=x {'x' * 1000}")
    assert repeats_secret("x" * 10_000_000)
