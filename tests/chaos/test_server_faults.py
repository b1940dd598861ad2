"""The fault table: what stores say, and what is stored, when their server fails under them."""

import os
import re
import socket
import stat
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from backends import BACKENDS, VARIANTS, Backend, OwnServer, Place, ServerMissingError
from backends.cassandra import Cassandra
from backends.mysql import Mysql
from backends.postgres import Postgres
from backends.redis import LocalRedis
from fault_judge import JudgeError
from fault_trial import BOUND, Trial

pytestmark = pytest.mark.long

COMMITS = ("--appendonly", "yes", "--appendfsync", "always")
DURABLE: dict[str, Callable[[], OwnServer]] = {
    "postgres": partial(Postgres.own, durable=True),
    "mysql": partial(Mysql.own, durable=True),
    "redis": partial(LocalRedis, *COMMITS),
    "cassandra": partial(Cassandra, own=True, durable=True),
}
"""Servers of their own that a test may kill, with what they have confirmed on the disk."""
PAUSABLE = [*DURABLE, "blob", "table"]
KEEPS_NO_TABLES = {"memory", "redis"}
"""Where nothing has to be created: a place that has vanished is an empty one."""
KILLS, KILLING_SECONDS = 3, 5.0
SLACK_SECONDS = 1.0
CUTS = 3

Tell = Callable[[str, str], None]


@pytest.fixture(scope="session")
def durable(servers: Callable[[str], Backend]) -> Iterator[Callable[[str], Backend]]:
    """Gives a server of its own; where it cannot be killed, that of all tests.

    All start at once, because one takes long.
    """
    with ExitStack() as started, ThreadPoolExecutor() as pool:

        def start(name: str) -> Backend:
            return started.enter_context(DURABLE[name]())

        starting = {name: pool.submit(start, name) for name in DURABLE}

        def server(name: str) -> Backend:
            if name not in starting:
                return servers(name)
            try:
                return starting[name].result()
            except ServerMissingError as missing:
                pytest.skip(str(missing))

        yield server


@pytest.fixture(params=PAUSABLE)
def server(request: pytest.FixtureRequest, durable: Callable[[str], Backend]) -> OwnServer:
    found = durable(request.param)
    if not (isinstance(found, OwnServer) and found.is_own):
        pytest.skip(f"{found.name} does not run as a process of our own")
    return found


@pytest.fixture
def trial(server: OwnServer) -> Iterator[Trial]:
    with server.place() as place, Trial(place) as running:
        yield running


def judged(trial: Trial, name: str, fault: str, tell: Tell) -> None:
    """Everybody goes on after the fault, and the judge finds nothing; a line of the table."""
    ended = time.monotonic()
    trial.go_on()
    seconds = time.monotonic() - ended
    trial.stop()
    trial.judge.owners(trial.stored())
    trial.judge.checkpoints()
    for variant in VARIANTS:
        goes_on = f"goes on after {seconds:.1f} s, one owner each, no checkpoint back"
        tell("faults", f"{fault:<28} {name:<9} {variant:<4}: {trial.told(variant)}; {goes_on}")


@pytest.mark.parametrize("server", DURABLE, indirect=True)
def test_a_server_that_is_killed_costs_neither_owner_nor_checkpoint(
    server: OwnServer, trial: Trial, tell: Tell
) -> None:
    began, kills = time.monotonic(), 0
    while kills < KILLS and time.monotonic() - began < KILLING_SECONDS:
        trial.go_on()
        trial.in_the_middle()
        server.kill()
        server.restart()
        kills += 1
    judged(trial, server.name, f"killed in the middle, {kills}x", tell)


def test_a_server_that_forgets_what_it_has_confirmed_is_caught() -> None:
    with LocalRedis() as server, server.place() as place, Trial(place) as trial:
        trial.stop()
        server.kill()
        server.restart()
        with pytest.raises(JudgeError, match="was won, and None is stored"):
            trial.judge.owners(trial.stored())


def test_a_server_that_is_silent_past_the_deadline_costs_nothing_either(
    server: OwnServer, trial: Trial, tell: Tell
) -> None:
    before = {worker: worker.unknown for worker in trial.workers}
    server.pause()
    try:
        trial.until(lambda worker: worker.unknown > before[worker])
    finally:
        server.resume()
    judged(trial, server.name, "silent past the deadline", tell)
    assert max(worker.longest for worker in trial.workers) < BOUND + SLACK_SECONDS


def test_connections_that_are_dropped_cost_nothing_either(
    server: OwnServer, trial: Trial, tell: Tell
) -> None:
    port = urlsplit(trial.place.url).port
    assert port
    cut = 0
    for _ in range(CUTS):
        cut += cut_connections(port)
        trial.go_on(1)
    assert cut >= CUTS
    judged(trial, server.name, f"{cut} connections dropped", tell)


def cut_connections(port: int) -> int:
    """End every connection of this process to a port, as its server or a firewall would."""
    cut = 0
    for entry in Path("/proc/self/fd").iterdir():
        try:
            if not stat.S_ISSOCK(entry.stat().st_mode):
                continue
            with socket.socket(fileno=os.dup(int(entry.name))) as one:
                if one.family == socket.AF_INET and one.getpeername()[1] == port:
                    one.shutdown(socket.SHUT_RDWR)
                    cut += 1
        except OSError:  # not connected, or closed meanwhile
            continue
    return cut


def test_a_place_that_vanishes_is_named_or_filled_again(
    backend: Backend, place: Place, tell: Tell
) -> None:
    name = backend.name
    with Trial(place) as trial:
        place.vanish()
        said = "a new place, filled again"
        if name not in KEEPS_NO_TABLES:
            trial.until(lambda worker: bool(worker.missing))
            said = trial.workers[0].missing[0]
            for worker in trial.workers:
                assert all(re.search(r"create_\w+=True", text) for text in worker.missing)
            place.create()
        trial.go_on()
        trial.stop()
        assert set(trial.stored()) >= {*map(str, range(8))}
        tell("faults", f"{'vanished':<28} {name:<9} both: {said}; goes on")


def test_what_the_table_leaves_out_has_its_reason(tell: Tell) -> None:
    for name, kind in BACKENDS.items():
        if not issubclass(kind, OwnServer):
            tell("faults", f"{'killed, silent, dropped':<28} {name:<9} left out: it has no server")
            continue
        assert name in PAUSABLE
        assert (name in DURABLE) != bool(kind.why_not_killed)
        if kind.why_not_killed:
            tell("faults", f"{'killed':<28} {name:<9} left out: {kind.why_not_killed}")
