"""The oracle of the fault trials says nothing of what is allowed, and catches what is not."""

from collections.abc import Mapping

import pytest

from fault_judge import Claim, Judge, JudgeError, Reading, Write

FIRST = Claim("0", "a", None, "e1")
RENEWAL = Claim("0", "a", "e1", "e2")


@pytest.mark.parametrize(
    ("claims", "stored"),
    [
        ([], {}),
        ([FIRST], {"0": "e1"}),
        ([FIRST, RENEWAL], {"0": "e2"}),
        ([FIRST, Claim("0", "b", None, None), RENEWAL], {"0": "e2"}),
        ([FIRST, Claim("0", "b", "e1", None)], {"0": "of b, whose answer was lost"}),
        ([FIRST, Claim("1", "b", None, "f1")], {"0": "e1", "1": "f1"}),
    ],
)
def test_owners_that_can_be_are_let_be(claims: list[Claim], stored: Mapping[str, str]) -> None:
    Judge(claims).owners(stored)


@pytest.mark.parametrize(
    ("claims", "stored", "found"),
    [
        ([FIRST, Claim("0", "b", None, "f1")], {"0": "f1"}, "won twice with one etag"),
        ([FIRST, RENEWAL, Claim("0", "b", "e1", "e3")], {"0": "e3"}, "won twice with one etag"),
        ([FIRST, Claim("0", "b", "e1", "e1")], {"0": "e1"}, "given twice"),
        ([FIRST], {}, "was won, and None is stored"),
        ([FIRST, RENEWAL], {"0": "e1"}, "was won, and e1 is stored"),
        ([FIRST], {"0": "x"}, "was won, and x is stored"),
    ],
)
def test_owners_that_cannot_be_are_caught(
    claims: list[Claim], stored: Mapping[str, str], found: str
) -> None:
    with pytest.raises(JudgeError, match=found):
        Judge(claims).owners(stored)


WRITES = [Write("0", 5, ended=1.0), Write("0", 7, ended=None), Write("1", 9, ended=2.0)]


@pytest.mark.parametrize("number", [5, 7])
def test_a_checkpoint_may_be_any_that_was_written_and_not_passed(number: int) -> None:
    Judge(writes=WRITES, readings=[Reading("0", number, began=3.0)]).checkpoints()


def test_a_reading_that_began_before_the_confirmation_may_show_what_was_before() -> None:
    writes = [Write("0", 4, ended=0.5), *WRITES]
    Judge(writes=writes, readings=[Reading("0", 4, began=0.9)]).checkpoints()


@pytest.mark.parametrize(
    ("reading", "found"),
    [
        (Reading("0", 4, began=3.0), "after 5 was confirmed"),
        (Reading("0", 8, began=3.0), "nobody has written"),
        (Reading("2", 0, began=3.0), "nobody has written"),
    ],
)
def test_a_checkpoint_that_cannot_be_is_caught(reading: Reading, found: str) -> None:
    with pytest.raises(JudgeError, match=found):
        Judge(writes=WRITES, readings=[reading]).checkpoints()


CHAIN = [
    Claim("a", "a", None, "e1"),
    Claim("a", "a", "e1", "e2"),
    Claim("a", "a", "e2", None),  # without an answer; stored as u
    Claim("a", "a", "u", "e3"),
]


@pytest.mark.parametrize(
    ("stored", "forgotten"), [("e3", 0), ("later", 0), ("u", 1), ("e2", 1), ("e1", 2), (None, 3)]
)
def test_claims_after_the_stored_one_are_forgotten(stored: str | None, forgotten: int) -> None:
    rows = {} if stored is None else {"a": stored}
    assert Judge(CHAIN).forgotten_claims(rows) == forgotten


def test_what_was_forgotten_before_is_counted_once() -> None:
    again = [*CHAIN, Claim("a", "a", "e1", "f2"), Claim("a", "a", "f2", "f3")]
    assert Judge(again).forgotten_claims({"a": "e1"}, since=len(CHAIN)) == 2
    assert Judge(again).forgotten_claims({"a": "f2"}, since=len(CHAIN)) == 1
    assert Judge(again).forgotten_claims({"a": "f3"}, since=len(CHAIN)) == 0


def test_partitions_of_several_owners_are_judged_by_their_winners() -> None:
    assert Judge([FIRST, RENEWAL]).forgotten_claims({}) == 0
    assert Judge([FIRST, RENEWAL]).won_twice() == 0
    assert Judge([FIRST, RENEWAL, Claim("0", "b", "e1", "e3")]).won_twice() == 1


def test_confirmed_checkpoints_above_the_stored_one_are_forgotten() -> None:
    assert Judge(writes=WRITES).forgotten_checkpoints({"0": 5, "1": 9}) == 0
    assert Judge(writes=WRITES).forgotten_checkpoints({"0": 4}) == 2
    assert Judge(writes=WRITES).forgotten_checkpoints({"0": 4}, since=2) == 1
