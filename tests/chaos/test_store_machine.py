"""Claims and checkpoints against the rules, on every backend, and proof that it can fail.

`tools/store_machine.py` says what happens; `python tools/campaign.py machine` runs more of it.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import campaign
from backends import Backend, Place
from campaigns import rounds, seed
from eventhub_checkpoints.records import Checkpoint, Proposal
from eventhub_checkpoints.stores.hook_results import Conflict, Lost, Seen, Won, Written
from eventhub_checkpoints.stores.memory import rows
from eventhub_checkpoints.stores.partition_state import CheckpointGuard
from store_machine import MachineError, run_machine

EXAMPLES = {"memory": 20, "sqlite": 8}
"""In CI; 4 on a server."""
EXAMPLES_TO_CATCH = 200


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level("ERROR", "eventhub_checkpoints"):
        yield


def test_claims_and_checkpoints_are_those_of_the_rules(
    backend: Backend, place: Place, tell: Callable[[str, str], None]
) -> None:
    seen = run_machine(place, seed(0), rounds(EXAMPLES.get(backend.name, 4), 500))
    for kind in ("claims won", "claims lost", "written", "adopted"):
        assert seen[kind], f"the machine has not met {kind!r}: {seen}"
    met = ", ".join(f"{count} {kind}" for kind, count in sorted(seen.items()))
    tell("machine", f"{backend.name}: {met}")


@pytest.fixture
def memory(servers: Callable[[str], Backend]) -> Place:
    return servers("memory").place()


def wins_always(stored: object, proposal: Proposal, now: float) -> Won | Lost:
    return Won(proposal.won(now))


def loses_over_a_vanished_row(stored: Any, proposal: Proposal, now: float) -> Won | Lost:
    if (stored.etag if stored else None) != proposal.etag:
        return Lost(stored)
    return Won(proposal.won(now))


def writes_always(stored: object, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
    return Written(checkpoint.version)


def never_refuses(guard: CheckpointGuard, sequence_number: int) -> bool:
    return False


def refuses_an_equal_number(guard: CheckpointGuard, sequence_number: int) -> bool:
    return guard.floor is not None and sequence_number <= guard.floor


@pytest.mark.parametrize(
    ("owner", "name", "broken"),
    [
        (rows, "claim", wins_always),
        (rows, "claim", loses_over_a_vanished_row),
        (rows, "write", writes_always),
        (CheckpointGuard, "refuses", never_refuses),
        (CheckpointGuard, "refuses", refuses_an_equal_number),
    ],
)
def test_a_broken_rule_is_caught(
    owner: object, name: str, broken: object, memory: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, broken)
    with pytest.raises(MachineError, match=r"\nseed 0:"):
        run_machine(memory, 0, EXAMPLES_TO_CATCH, shrinks=False)


def test_a_lost_answer_that_is_not_recognised_is_caught(
    memory: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("_sync", "_async"):
        name = f"eventhub_checkpoints.stores.{folder}.ownership.Ownerships._is_own"
        monkeypatch.setattr(name, lambda *_: False)
    with pytest.raises(MachineError, match="won claims: "):
        run_machine(memory, 0, EXAMPLES_TO_CATCH, shrinks=False)


def test_a_campaign_prints_its_seed_and_the_calls_of_a_failure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["machine", "--backend", "memory", "--seed", "7", "--rounds", "20"]
    assert campaign.main(arguments) == 0
    assert capsys.readouterr().out.startswith("machine: seed 7, 20 rounds\n")
    monkeypatch.setattr(rows, "claim", wins_always)
    assert campaign.main(arguments) == 1
    printed = capsys.readouterr().out
    assert "seed 7:" in printed
    assert "state.claim(" in printed
