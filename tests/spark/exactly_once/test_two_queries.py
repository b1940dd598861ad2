"""Two live queries on one scope: the rows of each event are written by one of them."""

import threading

import pytest

from waiting import LIMIT

pytestmark = pytest.mark.long


def in_thread(sink, frame):
    thread = threading.Thread(target=sink, args=(frame, 0))
    thread.start()
    return thread


def overtaken(results, batch, begin):
    """A second query reads the positions while the first has not committed yet."""
    planned, threads = threading.Event(), []
    frame = batch(p0=(begin, begin + 50), p1=(begin, begin + 30))

    def keep(new):
        planned.set()
        return new

    def write(connection, rows):
        threads.append(in_thread(results.sink(transform=keep), frame))
        assert planned.wait(LIMIT)
        results.write(connection, rows)

    results.sink(write)(frame, 0)
    threads[0].join(LIMIT)
    assert not threads[0].is_alive()


def test_the_first_batch_is_written_by_one_of_two(results, batch):
    overtaken(results, batch, 0)
    assert results.are(p0=50, p1=30)


def test_a_later_batch_is_written_by_one_of_two(results, batch):
    results.sink()(batch(p0=(0, 40), p1=(0, 10)), 0)
    overtaken(results, batch, 0)
    assert results.are(p0=50, p1=30)


def test_two_queries_with_other_batches_meet_without_loss(results, batch):
    """Each takes what is behind the other's last batch, whatever its own begins with."""

    def run(steps):
        sink = results.sink()
        for begin in range(0, 120, steps):
            sink(batch(p0=(begin, begin + steps), p1=(begin, begin + steps)), begin)

    threads = [threading.Thread(target=run, args=(steps,)) for steps in (40, 30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert results.are(p0=120, p1=120)
