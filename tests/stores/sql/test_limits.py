"""A request that is cut off leaves the time to tell the server so."""

import math

import pytest

from eventhub_checkpoints._shared._sync.compat import bounded
from eventhub_checkpoints._shared.deadline import seconds_left
from eventhub_checkpoints.stores.sql.postgresql import CutOffError, cancel_seconds, cut_off
from simulated_time import now, simulation, stall


@pytest.fixture(autouse=True)
def simulated():
    """Time passes only while an operation waits."""
    with simulation():
        yield


def waiting(begun):
    """An operation of psycopg for which nothing ever comes."""
    begun.append(seconds_left())
    while True:
        yield "readable"


def driven(operation):
    """Drive it as psycopg does while its socket is silent."""
    next(operation)
    while True:
        stall(0.005)
        operation.send(0)


@pytest.mark.parametrize("seconds", [0.16, 0.5, 1.2])
def test_a_request_is_cut_off_while_the_server_can_be_told(seconds):
    begun = []

    def request():
        with pytest.raises(CutOffError, match="did not answer"):
            driven(cut_off(waiting(begun)))
        return cancel_seconds()

    assert bounded(seconds, request) is not None
    assert begun != []
    assert now() < seconds


@pytest.mark.parametrize("seconds", [0.0, 0.03])
def test_a_request_that_could_not_be_cancelled_is_not_begun(seconds):
    begun = []
    with pytest.raises(CutOffError, match="no time was left"):
        bounded(seconds, lambda: driven(cut_off(waiting(begun))))
    assert begun == []


def test_outside_of_a_call_nothing_is_cut_off():
    assert seconds_left() == math.inf
    operation = cut_off(waiting([]))
    assert [next(operation), operation.send(0)] == ["readable"] * 2
