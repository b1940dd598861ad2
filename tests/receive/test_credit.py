"""How much credit a link is granted, and when."""

from eventhub_checkpoints.receive.amqp.fast import BYTES_AHEAD, GROWTH, Credit
from eventhub_checkpoints.receive.columns import Columns


def columns(begin, count, size=10):
    return Columns(numbers=[*range(begin, begin + count)], bodies=[bytes(size)] * count)


def read(credit, begin, count, size=10):
    credit.used(count)
    credit.taken(columns(begin, count, size))


def test_the_first_credit_is_prefetch():
    assert Credit(0, 10**6, prefetch=100).grant(0) == 100


def test_credit_grows_when_the_size_of_events_is_known():
    credit = Credit(0, 10**6, prefetch=100)
    credit.grant(0)
    read(credit, 0, 60)
    assert credit.grant(0) == 100 * GROWTH


def test_credit_is_topped_up_when_half_of_it_is_used():
    credit = Credit(0, 10**6, prefetch=100)
    credit.grant(0)
    assert credit.grant(0) is None
    credit.used(49)
    assert credit.grant(49) is None
    credit.used(1)
    assert credit.grant(50) == 100


def test_credit_never_reaches_past_the_end():
    credit = Credit(5, 65, prefetch=100)
    assert credit.grant(0) == 60
    credit.used(40)
    assert credit.grant(40) is None
    credit.taken(columns(5, 20))
    assert credit.grant(20) is None


def test_what_waits_to_be_taken_counts_for_the_end():
    credit = Credit(0, 150, prefetch=100)
    credit.grant(0)
    credit.used(100)
    assert credit.grant(100) == 50


def test_a_gap_in_the_numbers_brings_the_end_nearer():
    credit = Credit(0, 1000, prefetch=100)
    credit.grant(0)
    credit.used(100)
    credit.taken(columns(890, 100))
    assert credit.grant(0) == 10


def test_credit_for_large_events_is_bounded_by_their_bytes():
    credit = Credit(0, 10**6, prefetch=100)
    credit.grant(0)
    read(credit, 0, 100, size=2**20)
    assert credit.grant(0) == BYTES_AHEAD // 2**20


def test_a_flow_frame_that_must_be_sent_takes_no_credit_back():
    credit = Credit(0, 10**6, prefetch=100)
    credit.grant(0)
    assert credit.grant(0, urgent=True) == 100
    credit.used(10)
    credit.taken(columns(0, 10, size=2**25))
    assert credit.grant(0, urgent=True) == 90


def test_nothing_is_granted_behind_the_end():
    credit = Credit(0, 10, prefetch=100)
    credit.grant(0)
    read(credit, 0, 10)
    assert credit.grant(0) is None
    assert credit.grant(0, urgent=True) == 0
