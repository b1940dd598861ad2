"""When a silent link counts as stalled, on a clock of the test's own."""

from concurrent.futures import Future

import pytest

from eventhub_checkpoints.sdk.stall import STALLED, Silence

HALF = STALLED / 2


class Hub:
    """Answers when a test says so.

    Attributes:
        asked: the questions that were asked.
    """

    def __init__(self) -> None:
        self.asked: list[Future[int]] = []

    def ask(self) -> Future[int]:
        self.asked.append(Future())
        return self.asked[-1]


@pytest.fixture
def hub() -> Hub:
    return Hub()


def test_nothing_is_asked_before_half_of_the_time(hub: Hub) -> None:
    silence = Silence(hub.ask, 100.0)
    assert silence.newest_withheld(7, 100.0 + HALF - 0.1) is None
    silence.end(110.0)
    assert silence.newest_withheld(7, 110.0 + HALF - 0.1) is None
    assert hub.asked == []


def test_a_link_that_withholds_an_event_has_stalled_after_as_long_again(hub: Hub) -> None:
    silence = Silence(hub.ask, 0.0)
    assert silence.newest_withheld(7, HALF) is None
    [question] = hub.asked
    assert silence.newest_withheld(7, 50.0) is None
    question.set_result(7)
    assert silence.newest_withheld(7, 60.0) is None
    assert silence.newest_withheld(7, 60.0 + HALF - 0.1) is None
    assert silence.newest_withheld(7, 60.0 + HALF) == 7
    assert len(hub.asked) == 1


def test_an_event_that_arrives_ends_it(hub: Hub) -> None:
    silence = Silence(hub.ask, 0.0)
    silence.newest_withheld(7, HALF)
    hub.asked[0].set_result(7)
    silence.newest_withheld(7, HALF)
    silence.end(HALF + 1)
    assert silence.newest_withheld(8, 2 * HALF) is None
    assert len(hub.asked) == 1


@pytest.mark.parametrize("answer", [6, -1, OSError("the hub is away")])
def test_an_idle_hub_and_one_that_does_not_answer_are_asked_less_and_less_often(
    hub: Hub, answer: int | OSError
) -> None:
    silence, times = Silence(hub.ask, 0.0), []
    for now in range(100):
        assert silence.newest_withheld(7, float(now)) is None
        if hub.asked and not hub.asked[-1].done():
            times.append(now)
            if isinstance(answer, int):
                hub.asked[-1].set_result(answer)
            else:
                hub.asked[-1].set_exception(answer)
    assert times == [3, 9, 20, 41, 82]
