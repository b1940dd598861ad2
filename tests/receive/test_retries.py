"""When a broken receiver is opened again."""

from azure.core.pipeline.policies import RetryMode

from eventhub_checkpoints.receive.amqp.fast import Retries


def pauses(count, **settings):
    retries = Retries(settings)
    return [retries.pause() for _ in range(count)]


def test_pauses_double_as_those_of_the_client_do():
    assert pauses(4) == [0.8, 1.6, 3.2, None]


def test_a_pause_is_never_longer_than_allowed():
    assert pauses(3, retry_backoff_max=1) == [0.8, 1, 1]


def test_a_fixed_pause_stays():
    assert pauses(2, retry_mode="fixed") == pauses(2, retry_mode=RetryMode.Fixed) == [0.8, 0.8]


def test_no_retries_are_no_retries():
    assert pauses(1, retry_total=0) == [None]


def test_success_counts_from_nothing():
    retries = Retries({"retry_total": 1})
    assert retries.pause() == 0.8
    retries.succeeded()
    assert retries.pause() == 0.8
    assert retries.pause() is None
