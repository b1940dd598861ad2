"""A checkpoint that is rewound under a live consumer, on every backend and in both variants."""

import logging
from collections.abc import Callable

import pytest

from eventhub_checkpoints.conformance.clients import Client
from eventhub_checkpoints.records import Scope

# The rule is the base class's; a backend only has to show who owns what, and since when. So: in
# memory, and on one backend that claims singly and one that claims in batches.
pytestmark = pytest.mark.parametrize("backend", ["memory", "blob", "postgres"], indirect=True)

RECIPE = "to rewind: stop the consumer group, rewind, and start it"


@pytest.fixture
def consumer(opened: Callable[..., Client], scope: Scope) -> Client:
    """The store of a consumer that has the partition and has saved 100."""
    client = opened(scope)
    client.take("0", "consumer-7")
    client.list_checkpoints()
    client.save("0", 100)
    return client


@pytest.fixture
def operator(opened: Callable[..., Client], scope: Scope) -> Client:
    """The store of somebody who rewinds."""
    return opened(scope)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "eventhub_checkpoints" and record.levelno >= logging.WARNING
    ]


def test_a_rewind_under_a_live_consumer_names_it_and_the_consumer_says_that_it_is_undone(
    consumer: Client, operator: Client, scope: Scope, caplog: pytest.LogCaptureFixture
) -> None:
    operator.save("0", 10, force=True)
    (warning,) = warnings(caplog)
    assert warning.startswith(
        f"partition '0' of {scope}: checkpoint 10 was stored by force while 'consumer-7' owns"
    )
    assert warning.endswith(RECIPE)
    assert consumer.position("0") == 10, "force is unconditional"
    caplog.clear()
    consumer.save("0", 101)
    (warning,) = warnings(caplog)
    assert warning.startswith(
        f"partition '0' of {scope}: another writer rewound the checkpoint to 10, and this "
        "consumer has stored 101 over it"
    )
    assert warning.endswith(RECIPE)
    caplog.clear()
    consumer.save("0", 102)
    assert warnings(caplog) == [], "once for each rewind"


def test_a_rewind_as_the_recipe_says_is_silent(
    consumer: Client, operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    consumer.release(consumer.row("0"))
    operator.save("0", 10, force=True)
    consumer.take("0", "consumer-8", consumer.row("0")["etag"])
    consumer.list_checkpoints()
    consumer.save("0", 11)
    assert warnings(caplog) == []
    assert consumer.position("0") == 11


def test_the_owner_itself_and_a_partition_without_one_may_be_rewound_in_silence(
    consumer: Client, operator: Client, caplog: pytest.LogCaptureFixture
) -> None:
    consumer.save("0", 10, force=True)
    consumer.save("0", 11)
    operator.save("1", 10, force=True)
    assert warnings(caplog) == []
