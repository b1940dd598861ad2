from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from azure.eventhub import EventData

from eventhub_checkpoints.receive import (
    DataLossError,
    HubAddress,
    HubUnavailableError,
    OffsetRange,
    PartitionProperties,
    ReadSettings,
)
from eventhub_checkpoints.receive.amqp.events import columns_of
from eventhub_checkpoints.receive.reader import RangeReader

ADDRESS = HubAddress("ns", "orders", "$Default", "secret")
SILENCE = ()


def event(number):
    made = EventData(b"")
    made.raw_amqp_message.annotations = {b"x-opt-sequence-number": number}
    return made


class ScriptedStream:
    """Delivers what the script says, one list of sequence numbers a call.

    A number instead is reported as reached, and nothing is delivered.
    """

    reached, trouble, is_away = 0, "", False

    def __init__(self, script):
        self.script = script

    def next(self, timeout):
        numbers = self.script.pop(0)
        if isinstance(numbers, int):
            numbers, self.reached = (), numbers
        return columns_of([event(number) for number in numbers])


class ScriptedReader(RangeReader):
    """A range whose receivers and hub say what a test says: no stand-in compacts a partition."""

    def __init__(self, begin, end, *scripts, first=0, following=100, fail=True):
        settings = ReadSettings(fail_on_data_loss=fail)
        super().__init__(ADDRESS, OffsetRange("0", begin, end), settings, self._open)
        self.scripts = list(scripts)
        self.held = PartitionProperties("0", first, following, "", datetime.now(UTC))
        self.questions = 0

    @contextmanager
    def _open(self, *_):
        yield ScriptedStream(self.scripts.pop(0))

    def _properties(self):
        self.questions += 1
        return self.held

    def numbers(self):
        return [number for part in self.parts() for number in part.numbers]


def test_repeated_events_are_dropped():
    reader = ScriptedReader(0, 5, [[0, 1, 2], [2, 3], [1, 2, 3, 4]])
    assert reader.numbers() == [0, 1, 2, 3, 4]
    assert reader.questions == 0


def test_a_part_is_not_kept_while_the_next_one_is_not_asked_for():
    parts = ScriptedReader(0, 9, [[0, 1, 2], [3, 4]]).parts()
    part = next(parts)
    held = parts.gi_yieldfrom.gi_frame.f_locals.values()
    assert not any(each is part or each == [part] for each in held)


def test_events_behind_the_end_are_dropped():
    assert ScriptedReader(0, 3, [[0, 1, 2, 3, 4]]).numbers() == [0, 1, 2]


def test_a_gap_of_compaction_is_passed_over():
    reader = ScriptedReader(0, 10, [[0, 4], [9]])
    assert reader.numbers() == [0, 4, 9]


def test_a_gap_at_the_end_ends_with_the_next_event():
    assert ScriptedReader(0, 10, [[0, 4], [12]]).numbers() == [0, 4]


def test_a_gap_whose_begin_has_expired_is_loss():
    with pytest.raises(DataLossError, match="sequence number 1 has expired"):
        ScriptedReader(0, 10, [[0, 4], [9]], first=3).numbers()


def test_a_transport_that_reports_its_position_ends_a_range_without_an_event():
    reader = ScriptedReader(0, 10, [[0, 4], 7, [8], 10])
    assert reader.numbers() == [0, 4, 8]
    assert ScriptedReader(0, 10, [20]).numbers() == []


def test_events_it_has_skipped_may_have_expired():
    with pytest.raises(DataLossError, match="sequence number 1 has expired"):
        ScriptedReader(0, 10, [[0], 10], first=3).numbers()


def test_a_position_reported_before_is_silence():
    reader = ScriptedReader(0, 10, [[0], 5, 5], [[5], 10])
    assert reader.numbers() == [0, 5]


def test_many_gaps_cause_few_queries():
    reader = ScriptedReader(0, 100, [[number] for number in range(0, 102, 2)])
    assert len(reader.numbers()) == 50
    assert reader.questions == 2


def test_a_silent_receiver_is_replaced_before_it_is_believed():
    reader = ScriptedReader(0, 4, [[0, 1], SILENCE], [[2, 3]])
    assert reader.numbers() == [0, 1, 2, 3]


@pytest.mark.parametrize("fail", [True, False])
def test_silence_up_to_the_newest_event_is_not_taken_for_compaction(fail):
    with pytest.raises(HubUnavailableError, match=r"from sequence number 1 on .* up to 99"):
        ScriptedReader(0, 100, [[0], SILENCE], [SILENCE], fail=fail).numbers()


@pytest.mark.parametrize("end", [50, 100])
def test_a_receiver_that_never_delivered_leads_to_the_consumer_group(end):
    with pytest.raises(HubUnavailableError, match=r"nothing to consumer group '\$Default' within"):
        ScriptedReader(0, end, [SILENCE], [SILENCE]).numbers()


def test_a_range_that_compaction_has_emptied_ends_with_the_next_event():
    assert ScriptedReader(5, 10, [[12]]).numbers() == []


def test_two_silent_receivers_before_more_events_are_an_outage():
    with pytest.raises(HubUnavailableError, match="delivered nothing from sequence number 1 on"):
        ScriptedReader(0, 50, [[0], SILENCE], [SILENCE]).numbers()


def test_silence_is_counted_anew_after_an_event():
    scripts = [[0], SILENCE], [[1], SILENCE], [[2], SILENCE], [[3]]
    assert ScriptedReader(0, 4, *scripts).numbers() == [0, 1, 2, 3]


def test_the_reason_that_an_earlier_receiver_reported_is_kept_until_events_arrive(monkeypatch):
    troubles = ["epoch '9' holds it", ""]
    monkeypatch.setattr(ScriptedStream, "trouble", property(lambda _: troubles.pop(0)))
    with pytest.raises(HubUnavailableError, match="although it holds events up to 99: epoch '9'"):
        ScriptedReader(0, 5, [SILENCE], [SILENCE]).numbers()
    troubles[:] = ["epoch '9' holds it", "", ""]
    with pytest.raises(HubUnavailableError, match="from sequence number 1 on for 60 s, twice"):
        ScriptedReader(0, 5, [SILENCE], [[0], SILENCE], [SILENCE]).numbers()
