"""Checks of concurrent claims and checkpoints, of threads and of processes (G1, G3).

PYTEST_DONT_REWRITE: the message of an assertion is the reason that a report shows.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, count, cycle
from pathlib import Path
from typing import Any

from eventhub_checkpoints.base import ABSENT, Checkpoint, Proposal, Won, Written
from eventhub_checkpoints.conformance.clients import Client, Row
from eventhub_checkpoints.conformance.contract import BASE, PROCESSES, check
from eventhub_checkpoints.conformance.harness import Subject, race
from eventhub_checkpoints.conformance.pauses import HookCall
from eventhub_checkpoints.conformance.processes import RACERS, in_step
from eventhub_checkpoints.records import fresh_etag

THREADS = 8
ROUNDS = ("0", "1", "2", "3")


LEAST, MOST = 8, 64
"""Number of partitions of the first race and of the largest."""
STARTING_SECONDS = 1.5
"""Seconds in which races are started: the faster the store, the more races it takes to hit a race
condition."""
LEAST_PAUSE, MOST_PAUSE, CALLS_IN_A_PAUSE = 0.05, 1.0, 5
"""A pause of a hook ends with the other call. If a lock keeps that from ending, the pause takes so
many times as long as a call alone, within these limits in seconds.
"""
MOST_LINES = 64
"""Number of lines at which a hook is paused; if it has more, some are left out."""
Etags = Mapping[str, str | None]
Claim = Callable[[str, Etags, Client, float], list[Row]]


def winning_threads(clients: list[Client], partition_id: str, etag: str | None = None) -> list[str]:
    """Race for one partition and return the owners whose claims were returned as successful."""
    claims = [
        partial(client.claim, partition_id, f"owner-{index}", etag)
        for index, client in enumerate(clients)
    ]
    return [row["owner_id"] for row in race(claims) if row is not None]


@check("G1")
def one_of_many_first_claims_wins(s: Subject) -> None:
    """Of many simultaneous first claims of one partition, exactly one succeeds."""
    racers = s.others(THREADS)
    for partition_id in ROUNDS:
        won = winning_threads(racers, partition_id)
        assert len(won) == 1, f"{len(won)} of {THREADS} racers won one first claim"
        assert s.client.owner(partition_id) == won[0], "the winner is not the one that is listed"


@check("G1")
def one_of_many_claims_with_the_same_etag_wins(s: Subject) -> None:
    """Of many simultaneous claims with the same stored etag, exactly one succeeds."""
    racers = s.others(THREADS)
    for partition_id in ROUNDS:
        etag = s.client.take(partition_id, "a")["etag"]
        won = winning_threads(racers, partition_id, etag)
        assert len(won) == 1, f"{len(won)} of {THREADS} racers won with the same etag"
        assert s.client.owner(partition_id) == won[0], "the winner is not the one that is listed"


@check("G1", "G11", "P4")
def one_of_many_claims_through_one_store_wins(s: Subject) -> None:
    """Of many simultaneous claims through one store object, exactly one succeeds."""
    for partition_id in ROUNDS:
        won = winning_threads([s.client] * THREADS, partition_id)
        assert len(won) == 1, f"{len(won)} of {THREADS} claims through one store won"


@check("G11", "P4")
def one_store_serves_many_callers(s: Subject) -> None:
    """One store object serves several concurrent callers."""

    def work(partition_id: str) -> list[object]:
        s.client.take(partition_id, "a")
        s.client.list_ownership()
        s.client.save(partition_id, int(partition_id))
        return [s.client.owner(partition_id), s.client.position(partition_id)]

    seen = race([partial(work, str(number)) for number in range(THREADS)])
    assert seen == [["a", number] for number in range(THREADS)], f"callers at once saw {seen}"


@check("G3")
def racing_checkpoints_keep_the_highest(s: Subject) -> None:
    """Of checkpoints that several writers store simultaneously, the highest remains."""
    racers = s.others(4)
    for partition_id in ROUNDS:
        writes = enumerate(racers, 10)
        race([partial(racer.save_or_be_refused, partition_id, n) for n, racer in writes])
        last = s.client.position(partition_id)
        assert last == 13, f"checkpoints 10 to 13 were stored at once, and {last} stayed"


@check("G1", needs=("put_raw",))
def one_of_many_claims_of_a_vanished_row_wins(s: Subject) -> None:
    """Of many simultaneous claims with the etag of a deleted row, exactly one succeeds."""
    racers = s.others(THREADS)
    for partition_id in ROUNDS:
        etag = s.client.take(partition_id, "a")["etag"]
        s.put_raw("ownership", partition_id, None)
        won = winning_threads(racers, partition_id, etag)
        assert len(won) == 1, f"{len(won)} of {THREADS} racers won a deleted row"


def races() -> Iterator[list[str]]:
    """Yield the partitions of one race after another until the time is over; at least twice.

    The first races are small, because a slow store takes long for them.
    """
    end, first, size = time.monotonic() + STARTING_SECONDS, 0, LEAST
    for number in count():
        yield [str(partition_id) for partition_id in range(first, first + size)]
        first += size
        if number % 2:
            size = min(2 * size, MOST)
            if time.monotonic() >= end:
                return


def claim_together(owner_id: str, etags: Etags, client: Client, start: float) -> list[Row]:
    """Claim all partitions in one batch; return the successful claims."""
    batch = [client.proposal(partition_id, owner_id, etag) for partition_id, etag in etags.items()]
    for _ in in_step(start, [None]):
        won: list[Row] = list(client.claim_ownership(batch))
    return won


def claim_singly(owner_id: str, etags: Etags, client: Client, start: float) -> list[Row]:
    """Claim one partition after another; return the successful claims."""
    claims = in_step(start, list(etags.items()))
    won = [client.claim(partition_id, owner_id, etag) for partition_id, etag in claims]
    return [row for row in won if row is not None]


def save_all(number: int, partition_ids: list[str], client: Client, start: float) -> None:
    """Store a checkpoint of each partition; each process has the highest for half of them."""
    for partition_id in in_step(start, partition_ids):
        client.save_or_be_refused(partition_id, 10 + (number + int(partition_id)) % RACERS)


def winning_processes(s: Subject, claim: Claim, etags: Etags, kind: str) -> Etags:
    """Race for some partitions, each of which one process must win; return the new etags."""
    won = s.race_processes([partial(claim, f"owner-{n}", etags) for n in range(RACERS)])
    owners: dict[str, list[str]] = {partition_id: [] for partition_id in etags}
    for row in chain.from_iterable(won):
        owners[row["partition_id"]].append(row["owner_id"])
    several = sum(len(names) > 1 for names in owners.values())
    none = sum(not names for names in owners.values())
    assert not several, f"of {len(owners)} {kind}, {several} were won by more than one process"
    assert not none, f"of {len(owners)} {kind}, {none} were won by none of {RACERS} processes"
    listed = {row["partition_id"]: [row["owner_id"]] for row in s.client.list_ownership()}
    assert listed.items() >= owners.items(), f"of {len(owners)} {kind}, not all winners are listed"
    return {row["partition_id"]: row["etag"] for row in chain.from_iterable(won)}


@check("G1", needs=(PROCESSES,))
def one_of_several_processes_wins(s: Subject) -> None:
    """Of simultaneous claims of one partition by several processes, exactly one succeeds."""
    for claim, partition_ids in zip(cycle((claim_singly, claim_together)), races(), strict=False):
        etags = winning_processes(s, claim, dict.fromkeys(partition_ids), "first claims")
        winning_processes(s, claim, etags, "claims with the same etag")


@check("G3", needs=(PROCESSES,))
def racing_processes_keep_the_highest_checkpoint(s: Subject) -> None:
    """Of checkpoints that several processes store simultaneously, the highest remains."""
    highest = 10 + RACERS - 1
    for partition_ids in races():
        s.race_processes([partial(save_all, number, partition_ids) for number in range(RACERS)])
        saved = {row["partition_id"]: row["sequence_number"] for row in s.client.list_checkpoints()}
        lower = [each for each in partition_ids if saved.get(each) != highest]
        assert not lower, f"of {len(partition_ids)} races, {len(lower)} did not keep the highest"


def proposed(s: Subject, partition_id: str, number: int, seen: Any) -> tuple[str, Sequence[Any]]:
    """Return a claim by racer `number` that has seen an etag, or none (None)."""
    proposal = Proposal(s.scope, partition_id, f"owner-{number}", seen, fresh_etag())
    return "try_claim", [proposal]


def written(s: Subject, partition_id: str, number: int, seen: Any) -> tuple[str, Sequence[Any]]:
    """Return a write by racer `number` that has seen a version, or none (None)."""
    version = "" if s.client.store.makes_own_etags else fresh_etag()
    record = Checkpoint(s.scope, partition_id, str(4711 + number), 10 + number, version)
    return "write_checkpoint", [record, ABSENT if seen is None else seen]


def token_of(answer: object) -> str | None:
    """Return the etag or version of a row that a hook has stored; None if it stored none."""
    if isinstance(answer, Won):
        return answer.row.etag
    return answer.version if isinstance(answer, Written) else None


def assert_one_stores(
    s: Subject, hook_call: Callable[[Subject, str, int, Any], tuple[str, Sequence[Any]]]
) -> None:
    """Pause a hook at each of its lines, and call it in another process meanwhile: one stores."""
    partitions = map(str, count())

    def stored(partition_id: str, seen: str | None) -> tuple[HookCall, str | None]:
        """Call the hook alone."""
        call = (*hook_call(s, partition_id, 0, seen), None)
        alone, _ = s.call_during_pause(call, ("identity", [s.scope], None), 0.0)
        return alone, token_of(alone.answer)

    for has_row in (False, True):
        partition_id = next(partitions)
        alone, token = stored(partition_id, None)
        if has_row:
            alone, token = stored(partition_id, token)
        assert token is not None, f"without a rival, {alone.answer!r} was returned"
        seconds = min(max(LEAST_PAUSE, CALLS_IN_A_PAUSE * alone.seconds), MOST_PAUSE)
        step = -(-len(alone.lines) // MOST_LINES)
        for line in alone.lines[:: max(step, 1)]:
            partition_id = next(partitions)
            seen = stored(partition_id, None)[1] if has_row else None
            paused = (*hook_call(s, partition_id, 0, seen), line)
            other = (*hook_call(s, partition_id, 1, seen), None)
            answers = [call.answer for call in s.call_during_pause(paused, other, seconds)]
            winners = sum(token_of(answer) is not None for answer in answers)
            name, where = paused[0], f"line {line[1]} of {Path(line[0]).name}"
            assert winners <= 1, (
                f"two processes that had seen the same row have both stored another by {name}: one "
                f"was paused before {where} while the other called it"
            )
            has_failed = any(isinstance(answer, Exception) for answer in answers)
            assert winners or has_failed, (
                f"neither of two processes has stored a row by {name}: one was paused before "
                f"{where} while the other called it"
            )


@check("G1", needs=(PROCESSES, BASE))
def a_paused_claim_has_one_winner(s: Subject) -> None:
    """Of two claims with the same etag, one wins, at whatever line of `try_claim` one pauses."""
    assert_one_stores(s, proposed)


@check("G3", needs=(PROCESSES, BASE))
def a_paused_checkpoint_has_one_winner(s: Subject) -> None:
    """Of two writes that have seen the same row, one is stored, wherever one of them pauses."""
    assert_one_stores(s, written)
