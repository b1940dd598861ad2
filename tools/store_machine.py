"""State machine of claims and checkpoints: Hypothesis chooses the calls of several clients.

The clients share a consumer group on one backend; they are sync and aio stores in turn. Each answer
is compared with the pure rules: claims with `stores/memory/rows.py`, releases also with `Lease`,
checkpoints with the judge of `tools/forward_judge.py`. In `tools/forward_model.py` calls overlap,
but in memory only; here they follow one another, on every backend.
"""

import inspect
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from time import monotonic
from typing import Any, TypeVar
from unittest import mock

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from backends import VARIANTS, Place
from eventhub_checkpoints.conformance.clients import Client, Loop, Row
from eventhub_checkpoints.errors import StaleCheckpointError, StoreUnavailableError
from eventhub_checkpoints.records import RELEASED, Checkpoint, Ownership, Proposal, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Listing, Won, Written
from eventhub_checkpoints.stores.memory.rows import claim as rule_of_claims
from eventhub_checkpoints.stores.partition_state import Lease
from forward_judge import ForwardError, Judge, Update

NAMES = ("a", "b", "c")
PARTITIONS = ("0", "1")
SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")
EXAMPLES_AT_ONCE = 20
PAUSES = tuple(
    f"eventhub_checkpoints.stores.{folder}.{module}.pause"
    for folder in ("_sync", "_async")
    for module in ("checkpoints", "ownership")
)
names = st.sampled_from(NAMES)
partitions = st.sampled_from(PARTITIONS)
batches = st.lists(partitions, min_size=1, max_size=len(PARTITIONS), unique=True)
T = TypeVar("T")


class MachineError(AssertionError):
    """A store did something else than the rule."""


def then(result: Any, go_on: Callable[[Any], T]) -> Any:
    """Apply a function to the result of a hook, sync or async."""
    if not inspect.isawaitable(result):
        return go_on(result)

    async def waited() -> T:
        return go_on(await result)

    return waited()


class Member:
    """Client of the machine: a store, whose hooks report their answers.

    Attributes:
        answers: receives the answers of writes; None between two calls.
        loses_answer: whether the answer to the next request of a claim or a write is lost.
        checkpoints_shown, ownerships_shown: the last lists that the backend returned.
    """

    def __init__(self, name: str, store: Any, loop: Loop) -> None:
        self.name = name
        self.client = Client(store, SCOPE, loop)
        self.answers: Callable[[Written | Conflict, bool], None] | None = None
        self.loses_answer = False
        self.checkpoints_shown: Listing[Checkpoint] = Listing([])
        self.ownerships_shown: Listing[Ownership] = Listing([])
        reports: dict[str, Callable[[Any], Any]] = {
            "read_checkpoints": self._checkpoints_read,
            "read_ownerships": self._ownerships_read,
            "write_checkpoint": self._answered,
            "try_claim": self._claimed,
            "try_claims": self._claimed,
        }
        for hook, report in reports.items():
            setattr(store, hook, reporting(getattr(store, hook), report))
        self.makes_own_etags: bool = store.makes_own_etags

    def _checkpoints_read(self, listing: Listing[Checkpoint]) -> Listing[Checkpoint]:
        self.checkpoints_shown = listing
        return listing

    def _ownerships_read(self, listing: Listing[Ownership]) -> Listing[Ownership]:
        self.ownerships_shown = listing
        return listing

    def _answered(self, answer: Written | Conflict) -> Written | Conflict:
        if self.makes_own_etags and isinstance(answer, Conflict):
            # Where the backend makes the versions, a row is recognised by its position: after a
            # lost conflict, that of another writer at the same position would count as its own.
            self.loses_answer = False
        if self.answers is not None:
            self.answers(answer, self.loses_answer)
        self._lose_answer()
        return answer

    def _claimed(self, answer: T) -> T:
        self._lose_answer()
        return answer

    def _lose_answer(self) -> None:
        if self.loses_answer:
            self.loses_answer = False
            raise StoreUnavailableError("the answer was lost")


def reporting(hook: Callable[..., Any], report: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return a hook whose answer passes through a function."""
    return lambda *arguments: then(hook(*arguments), report)


class Group:
    """The clients and the backend that all examples share; each example has a consumer group.

    Attributes:
        seen: number of events by kind, in all examples.
    """

    def __init__(self, place: Place, members: Sequence[Member], observer: Any) -> None:
        self.place = place
        self.members = {member.name: member for member in members}
        self.observer = observer
        self.seen: Counter[str] = Counter()


@contextmanager
def group_on(place: Place) -> Iterator[Group]:
    """Open the clients, and one more store that reads and deletes for the machine."""
    with ExitStack() as opened:
        loop = opened.enter_context(Loop())
        members = []
        for number, name in enumerate(NAMES):
            store = place.open(VARIANTS[number % 2], on_stale="raise")
            members.append(Member(name, store, loop))
            opened.callback(members[-1].client.close)
        observer = opened.enter_context(place.open("sync"))
        for pause in PAUSES:
            opened.enter_context(mock.patch(pause, return_value=0.0))
        yield Group(place, members, observer)


class StoreMachine(RuleBasedStateMachine):
    """One example: calls of the clients in a consumer group that no other example uses.

    Attributes:
        owners, checkpoints: the rows that are stored according to the rules, by partition.
    """

    group: Group

    def __init__(self) -> None:
        super().__init__()
        self.scope = SCOPE._replace(consumer_group=uuid.uuid4().hex)
        self.judge = Judge()
        self.owners: dict[str, Ownership] = {}
        self.checkpoints: dict[str, Checkpoint] = {}
        self.etags: dict[str, list[str]] = {key: ["never stored"] for key in PARTITIONS}
        self.leases: dict[tuple[str, str], Lease] = {
            (name, key): Lease() for name in NAMES for key in PARTITIONS
        }
        self.heads = dict.fromkeys(PARTITIONS, 0)

    def teardown(self) -> None:
        self.group.seen.update(self.judge.seen)

    def member(self, name: str) -> tuple[Member, Client]:
        """Return a client, and its store with this example's consumer group."""
        member = self.group.members[name]
        return member, member.client.within(self.scope)

    @rule(name=names, keys=batches, age=st.integers(0, 5), loses_answer=st.booleans())
    def claim(self, name: str, keys: list[str], age: int, loses_answer: bool) -> None:
        """Claim, renew or take over partitions with the newest etag, an older one or none."""
        member, client = self.member(name)
        # In a batch of a backend without batches, it is not known whose answer is lost.
        loses_answer = loses_answer and not (member.makes_own_etags and len(keys) > 1)
        batch = {key: client.proposal(key, name, self._etag(key, age)) for key in keys}
        for key in set(PARTITIONS) - set(keys):
            self._lose(name, key)
        by_rule = {key for key in keys if self._wins(batch[key])}
        # A backend that makes the etags recognises a lost answer by the owner alone.
        is_recognised = loses_answer and member.makes_own_etags
        by_owner = {
            key for key in keys if is_recognised and self._owner(key) == name and key not in by_rule
        }
        member.loses_answer = loses_answer
        won = {row["partition_id"]: row for row in client.claim_ownership(batch.values())}
        expected = [key for key in keys if key in by_rule | by_owner]
        self._require_equal(list(won), expected, "won claims")
        for key, row in batch.items():
            self.group.seen["claims won" if key in won else "claims lost"] += 1
            if key in won:
                self._won(name, row, won[key], is_new=key in by_rule)
            else:
                self._lose(name, key)

    @rule(name=names, key=partitions, age=st.integers(0, 3))
    def release(self, name: str, key: str, age: int) -> None:
        """Release a partition over an etag that this client has won, the newest or an older one."""
        etags = [etag for etag in self.etags[key] if etag in self.leases[name, key].etags]
        if not etags:
            return
        _, client = self.member(name)
        etag = etags[-1 - min(age, len(etags) - 1)]
        lease = self.leases[name, key]
        row = client.proposal(key, RELEASED, etag)
        rows = [row, {**row, "etag": lease.newer_etag(etag) or etag}]
        is_won = any(map(self._wins, rows))
        released = client.claim_ownership([row])
        self._require_equal(len(released), int(is_won), "released partitions")
        self.group.seen["releases won" if is_won else "releases lost"] += 1
        if is_won:
            self._won(name, row, released[0])
        else:
            self._lose(name, key)

    @rule(name=names)
    def list_ownership(self, name: str) -> None:
        """List the ownerships, and compare them with what the rule has stored."""
        member, client = self.member(name)
        began = self.judge.tick()
        listed = {row["partition_id"]: row for row in client.list_ownership()}
        shown = {key: (row["owner_id"], row["etag"]) for key, row in listed.items()}
        owners = {key: (row.owner_id, row.etag) for key, row in self.owners.items()}
        self._require_equal(shown, owners, "listed ownerships")
        rows = {row.partition_id: row for row in member.ownerships_shown.rows}
        self.judge.ownerships_listed(name, began, rows)
        for key in PARTITIONS:
            self.leases[name, key] = self.leases[name, key].listed(self.owners.get(key))

    @rule(name=names)
    def list_checkpoints(self, name: str) -> None:
        """List the checkpoints, and compare them with what was stored."""
        member, client = self.member(name)
        for key in PARTITIONS:
            self.judge.view(name, key)
        began = self.judge.tick()
        listed = {row["partition_id"]: row["sequence_number"] for row in client.list_checkpoints()}
        numbers = {key: row.sequence_number for key, row in self.checkpoints.items()}
        self._require_equal(listed, numbers, "listed sequence numbers")
        rows = {row.partition_id: row for row in member.checkpoints_shown.rows}
        self._require_equal(positions(rows), positions(self.checkpoints), "listed checkpoints")
        self.judge.checkpoints_listed(name, began, rows)

    @rule(
        name=names,
        key=partitions,
        advance=st.integers(-6, 3),
        has_offset=st.booleans(),
        loses_answer=st.booleans(),
    )
    def update(
        self, name: str, key: str, advance: int, has_offset: bool, loses_answer: bool
    ) -> None:
        """Store a checkpoint: a higher one, the same or a lower one."""
        self._update(name, key, self._number(key, advance), has_offset, loses_answer, False)

    @rule(name=names, key=partitions, advance=st.integers(-6, 3), loses_answer=st.booleans())
    def force(self, name: str, key: str, advance: int, loses_answer: bool) -> None:
        """Store a checkpoint on purpose, also a lower one."""
        self._update(name, key, self._number(key, advance), True, loses_answer, True)

    @rule()
    def recreate_hub(self) -> None:
        """Recreate the event hub: its sequence numbers start again at 0."""
        self.heads = dict.fromkeys(PARTITIONS, 0)

    @rule(key=partitions, advance=st.integers(-6, 3), has_number=st.booleans())
    def official_write(self, key: str, advance: int, has_number: bool) -> None:
        """Have an official client write any position, without a condition."""
        number = self._number(key, advance)
        fields: dict[str, str | None] = {"offset": str(100 * number)}
        if has_number:
            fields["sequencenumber"] = str(number)
        self.group.place.put_raw("checkpoint", self.scope, key, fields)
        listing = self.group.observer.examine(*self.scope).rows.checkpoints
        self.checkpoints = {row.partition_id: row for row in listing.rows}
        self.judge.written_by(self.checkpoints[key].version, "an official client")

    @rule(key=partitions)
    def delete(self, key: str) -> None:
        """Delete the rows of a partition, as an operator may."""
        self.group.observer.delete_partition(*self.scope, key)
        self.owners.pop(key, None)
        self.checkpoints.pop(key, None)

    def _update(
        self, name: str, key: str, number: int, has_offset: bool, loses_answer: bool, forced: bool
    ) -> None:
        member, client = self.member(name)
        update = Update(name, key, number, forced)
        offset = str(100 * number) if has_offset else ""

        def answered(answer: Written | Conflict, is_lost: bool) -> None:
            update.requests += 1
            if isinstance(answer, Written):
                replaced = self.checkpoints.get(key)
                self.checkpoints[key] = Checkpoint(self.scope, key, offset, number, answer.version)
                self.judge.carried_out(update, answer.version, replaced)
            if is_lost:
                self.judge.not_answered(update)
            else:
                self.judge.answered(update, answer)

        self.judge.began(update)
        member.answers, member.loses_answer = answered, loses_answer
        try:
            self._save(client, client.checkpoint(key, number, offset or None), update)
        except ForwardError as error:  # of the judge; Hypothesis shrinks an Exception only
            raise MachineError(str(error)) from None
        finally:
            member.answers, member.loses_answer = None, False
            self.judge.ended(update)

    def _save(self, client: Client, row: Row, update: Update) -> None:
        try:
            client.update_checkpoint(row, force=update.forced)
        except StaleCheckpointError:
            self.judge.refused(update)
        else:
            self.judge.succeeded(update)

    def _wins(self, row: Row) -> bool:
        """Return whether a claim or a release wins according to the rule."""
        stored = self.owners.get(row["partition_id"])
        return isinstance(rule_of_claims(stored, Proposal.from_dict(row, ""), 0.0), Won)

    def _owner(self, key: str) -> str | None:
        return self.owners[key].owner_id if key in self.owners else None

    def _won(self, name: str, row: Row, won: Row, *, is_new: bool = True) -> None:
        key, owner_id, etag = row["partition_id"], won["owner_id"], won["etag"]
        self._require_equal(owner_id, row["owner_id"], "owner")
        self._require(not is_new or etag not in self.etags[key], f"etag {etag} is used again")
        stored = Ownership(self.scope, key, owner_id, etag, won["last_modified_time"])
        self.owners[key] = stored
        self.etags[key].append(etag)
        self.leases[name, key] = self.leases[name, key].won(stored, row.get("etag"))
        self.judge.claimed(name, key, won=bool(owner_id))

    def _lose(self, name: str, key: str) -> None:
        lease = self.leases[name, key]
        if lease.owner_id:
            self.leases[name, key] = lease.lost()
            self.judge.given_up(name, key)

    def _etag(self, key: str, age: int) -> str | None:
        """Return the stored etag, an older one or, where `age` is too high, none."""
        stored = self.owners.get(key)
        if age == 0:
            return stored.etag if stored else None
        return self.etags[key][-age] if age <= len(self.etags[key]) else None

    def _number(self, key: str, advance: int) -> int:
        number = max(self.heads[key] + advance, 0)
        self.heads[key] = max(self.heads[key], number)
        return number

    @staticmethod
    def _require(holds: bool, sentence: str) -> None:
        if not holds:
            raise MachineError(sentence)

    def _require_equal(self, shown: object, expected: object, what: str) -> None:
        self._require(shown == expected, f"{what}: {shown}; by the rule {expected}")


def positions(rows: Mapping[str, Checkpoint]) -> dict[str, tuple[str, int | None, str]]:
    """Return what is compared of checkpoints, by partition."""
    return {key: (row.offset, row.sequence_number, row.version) for key, row in rows.items()}


def run_machine(
    place: Place, number: int, examples: int, steps: int = 30, *, shrinks: bool = True
) -> Counter[str]:
    """Run this many examples from a seed; return what occurred, by kind.

    Raises:
        AssertionError: a store differs from the rule; the calls that show it are its notes.
    """
    with group_on(place) as group:
        seed_and_run(group, number, examples, steps, shrinks)
        return group.seen


def run_machine_for(place: Place, number: int, seconds: float) -> Counter[str]:
    """Run examples for this time; seeds count up from the given one.

    Raises:
        AssertionError: see `run_machine`; it also names the seed.
    """
    until = monotonic() + seconds
    with group_on(place) as group:
        while monotonic() < until:
            seed_and_run(group, number, EXAMPLES_AT_ONCE, 50, shrinks=True)
            group.seen["examples"] += EXAMPLES_AT_ONCE
            number += 1
        return group.seen


def seed_and_run(group: Group, number: int, examples: int, steps: int, shrinks: bool) -> None:
    """Run examples on a group of clients."""
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
    machine = seed(number)(type("Machine", (StoreMachine,), {"group": group}))
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        phases=phases,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.normal,
    )
    try:
        run_state_machine_as_test(machine, settings=chosen)
    except MachineError as error:
        calls = "\n".join(getattr(error, "__notes__", []))
        raise MachineError(f"{error}\nseed {number}:\n{calls}") from error
