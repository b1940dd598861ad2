"""Which partitions a member claims: by each rule, and by the official client's load balancer."""

import copy
import random
from collections import Counter
from types import SimpleNamespace

import pytest
from azure.eventhub import LoadBalancingStrategy
from azure.eventhub._eventprocessor import ownership_manager
from azure.eventhub._eventprocessor.ownership_manager import OwnershipManager

import campaigns
from eventhub_checkpoints import Scope
from eventhub_checkpoints.consume.balancer import STRATEGIES, Row, Strategy, proposals

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
NOW = 1_000_000.0
EXPIRES = 60.0
ME = "me"
MOST_OWNERS, MOST_PARTITIONS = 12, 64
GROUPS = campaigns.rounds(2_000, 10_000)


def row(partition_id: int | str, owner: str, age: float = 1.0) -> Row:
    """Return an ownership as a store lists it."""
    return {
        **SCOPE.as_dict(),
        "partition_id": str(partition_id),
        "owner_id": owner,
        "etag": f"etag {partition_id}",
        "last_modified_time": NOW - age,
    }


def held(**owners: int) -> list[Row]:
    """Return the rows of owners that hold so many partitions each, from 0 on."""
    names = [owner for owner, count in owners.items() for _ in range(count)]
    return [row(number, owner) for number, owner in enumerate(names)]


def ids(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def proposed(
    rows: list[Row], partitions: int, strategy: Strategy = "greedy", seed: int = 0
) -> list[Row]:
    """Return what a member proposes, which has changed no row that it was given."""
    before = copy.deepcopy(rows)
    result = proposals(
        rows,
        ids(partitions),
        SCOPE,
        ME,
        NOW,
        expires_after=EXPIRES,
        strategy=strategy,
        chance=random.Random(seed),
    )
    assert rows == before
    return result


def claimed(rows: list[Row], partitions: int, strategy: Strategy = "greedy") -> list[str]:
    return sorted(each["partition_id"] for each in proposed(rows, partitions, strategy))


# The rules


def test_the_first_member_of_a_group_claims_every_partition() -> None:
    assert claimed([], 4) == ids(4)
    assert claimed([], 1) == ["0"]


def test_a_first_claim_has_the_names_of_the_partition_and_no_etag() -> None:
    assert proposed([], 1) == [{**SCOPE.as_dict(), "partition_id": "0", "owner_id": ME}]


def test_a_claim_of_a_partition_with_a_row_has_all_that_the_row_has() -> None:
    released = {**row(0, ""), "extra": "kept"}
    assert proposed([released], 1) == [released | {"owner_id": ME}]


def test_a_balanced_member_claims_one_free_partition_in_a_round() -> None:
    assert len(claimed([], 4, "balanced")) == 1
    rows = held(me=2)
    assert claimed(rows, 4, "balanced")[:2] == ["0", "1"]
    assert len(claimed(rows, 4, "balanced")) == 3


def test_what_is_held_is_renewed_also_above_the_share() -> None:
    assert claimed(held(me=3, other=1), 4) == ["0", "1", "2"]


def test_a_partition_is_free_when_it_was_released_or_has_expired() -> None:
    rows = [row(0, ""), row(1, "gone", EXPIRES + 0.001), row(2, "there", EXPIRES), row(3, "there")]
    assert claimed(rows, 4) == ["0", "1"]


def test_a_released_partition_is_free_at_whatever_age() -> None:
    assert claimed([row(0, "", 0.0), row(1, "", 10 * EXPIRES)], 2) == ["0", "1"]


def test_an_own_ownership_that_has_expired_is_won_again_like_any_other() -> None:
    rows = [row(0, ME, EXPIRES + 1), row(1, ME)]
    assert claimed(rows, 2) == ["0", "1"]
    assert claimed([*rows, row(2, "other"), row(3, "other"), row(4, "other")], 5) == ["0", "1"]


def test_the_share_is_rounded_up_while_there_are_free_partitions() -> None:
    assert len(claimed(held(other=2), 5)) == 3
    assert claimed(held(me=2, other=2), 5)[:2] == ["0", "1"]
    assert len(claimed(held(me=2, other=2), 5)) == 3
    assert claimed(held(me=3, other=1), 5) == ["0", "1", "2"]


def test_one_partition_is_taken_over_below_the_share_rounded_down() -> None:
    assert len(claimed(held(other=4), 4)) == 1
    assert claimed(held(me=2, other=3), 5) == ["0", "1"]
    assert len(claimed(held(me=1, other=3), 4)) == 2
    assert claimed(held(other=1), 1) == []


def test_it_is_taken_over_from_one_that_has_the_most() -> None:
    rows = held(few=2, many=4, more=4)
    taken = Counter(proposed(rows, 10, seed=seed)[0]["partition_id"] for seed in range(500))
    assert {*taken} == {str(number) for number in range(2, 10)}
    assert min(taken.values()) > 20


def test_nothing_is_taken_over_while_there_are_free_partitions() -> None:
    assert len(claimed(held(other=4), 5)) == 1
    assert claimed(held(other=4), 5) == ["4"]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_of_partitions_that_the_hub_does_not_have_are_left_alone(strategy: Strategy) -> None:
    """Those of a hub that had more partitions before it was created again."""
    rows = [row(0, ME), row(1, "other"), row(2, ME), row(3, ""), row(4, "gone", 1e6), row(5, "big")]
    assert claimed(rows, 2, strategy) == ["0"]
    only = [row(7, "other"), row(8, "other")]
    assert {*claimed(only, 3, strategy)} <= {*ids(3)}
    assert len(claimed(only, 3, strategy)) == (3 if strategy == "greedy" else 1)


def test_who_holds_only_partitions_that_are_gone_is_no_owner() -> None:
    assert claimed([row(9, "other")], 4) == ids(4)


def test_a_hub_without_partitions_leaves_nothing_to_claim() -> None:
    assert proposed([], 0) == []


def test_rows_may_come_as_any_iterable_and_partitions_in_any_order() -> None:
    result = proposals(
        iter(held(me=1)), ("2", "0", "1"), SCOPE, ME, NOW, expires_after=EXPIRES, strategy="greedy"
    )
    assert sorted(each["partition_id"] for each in result) == ids(3)


# The oracle


def random_group(chance: random.Random) -> tuple[list[Row], int]:
    """Return the rows of a group in any state, and the number of partitions."""
    count = chance.randint(1, MOST_PARTITIONS)
    owners = [f"owner {number}" for number in range(chance.randint(0, MOST_OWNERS))]
    if owners and chance.random() < 0.7:
        owners[0] = ME
    # One that has most, and others that have nearly nothing.
    weights = [chance.random() ** 3 for _ in owners]
    # In half of the groups, every partition has a row, and so for live and for owned ones.
    of_row, of_live, of_owned = (chance.choice([1.0, chance.random()]) for _ in range(3))
    rows = []
    for number in range(count):
        if chance.random() < of_row:
            owner = chance.choices(owners, weights)[0] if owners else ""
            owner = owner if chance.random() < of_owned else ""
            is_live = chance.random() < of_live
            age = chance.choice([0.0, 1.0, EXPIRES] if is_live else [EXPIRES + 0.001, 1e6])
            rows.append(row(number, owner, age))
    chance.shuffle(rows)
    return rows, count


class Oracle(OwnershipManager):
    """The official client's load balancer of the member `ME`, without its client."""

    def __init__(self, strategy: Strategy) -> None:
        self.fully_qualified_namespace, self.eventhub_name, self.consumer_group = SCOPE
        self.owner_id, self.ownership_timeout = ME, EXPIRES
        self.load_balancing_strategy = LoadBalancingStrategy(strategy)

    def proposed(self, rows: list[Row], partitions: int) -> list[Row]:
        return list(self._balance_ownership(copy.deepcopy(rows), ids(partitions)))


@pytest.fixture
def its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle reads a clock; the rule is given the time."""
    monkeypatch.setattr(ownership_manager, "time", SimpleNamespace(time=lambda: NOW))


def admissible(rows: list[Row], partitions: int) -> set[str]:
    """Return the partitions of which a new claim may be: free ones, else of one with the most."""
    owners = {each["partition_id"]: each["owner_id"] for each in rows if is_live(each)}
    free = {*ids(partitions)} - owners.keys()
    counts = Counter(owners.values())
    return free or {key for key, owner in owners.items() if counts[owner] == max(counts.values())}


def is_live(each: Row) -> bool:
    return bool(each["owner_id"]) and each["last_modified_time"] + EXPIRES >= NOW


def parts(claims: list[Row], rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Return the renewals, in order of their ids, and the new claims."""
    mine = {each["partition_id"] for each in rows if each["owner_id"] == ME and is_live(each)}
    renewals = [each for each in claims if each["partition_id"] in mine]
    return sorted(renewals, key=id_of), [each for each in claims if id_of(each) not in mine]


def id_of(each: Row) -> str:
    return str(each["partition_id"])


@pytest.mark.usefixtures("its_time")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_proposes_what_the_official_load_balancer_may_propose(strategy: Strategy) -> None:
    seed = campaigns.seed(33)
    chance, oracle, kinds = random.Random(seed), Oracle(strategy), Counter[str]()
    for number in range(GROUPS):
        rows, partitions = random_group(chance)
        ours = proposed(rows, partitions, strategy, number)
        theirs = oracle.proposed(rows, partitions)
        said = f"group {number} of seed {seed}"
        (renewed, new), (expected, also_new) = parts(ours, rows), parts(theirs, rows)
        assert renewed == expected, said
        assert len(new) == len(also_new), said
        may = admissible(rows, partitions)
        assert {*map(id_of, new)} <= may, said
        assert {*map(id_of, also_new)} <= may, said
        assert len({*map(id_of, ours)}) == len(ours), said
        stored = {each["partition_id"]: each for each in rows}
        for each in new:
            bare = {**SCOPE.as_dict(), "partition_id": each["partition_id"]}
            assert each == stored.get(id_of(each), bare) | {"owner_id": ME}, said
        is_free = bool({*ids(partitions)} - {id_of(each) for each in rows if is_live(each)})
        kinds["renewed"] += bool(renewed)
        kinds["claimed" if is_free else "taken over"] += bool(new)
        kinds["nothing new"] += not new
    # The draw reaches every rule.
    assert len(kinds) == 4, kinds
    assert min(kinds.values()) > GROUPS / 50, kinds
