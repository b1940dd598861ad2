"""Findings about a consumer group: what is wrong with it, by which evidence, and what mends it.

Every rule is a function from facts to findings; `examination` reads the facts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from eventhub_checkpoints._shared.offset_words import Meaning, meaning_of
from eventhub_checkpoints._shared.start_position import is_of_another_form, refused_by_hub
from eventhub_checkpoints._shared.texts import partitions, some
from eventhub_checkpoints.errors import (
    CheckpointStoreError,
    HubUnavailableError,
    StoreAccessError,
    StoreNotReadyError,
    StoreUnavailableError,
)
from eventhub_checkpoints.operations.cost import (
    PRICES,
    PRICES_READ,
    SMALLEST_SERVER,
    balancing_requests,
    per_month,
)
from eventhub_checkpoints.operations.groups import Group, Row, in_order
from eventhub_checkpoints.operations.positions import Position
from eventhub_checkpoints.receive.address import PartitionProperties
from eventhub_checkpoints.records import Scope
from eventhub_checkpoints.sdk.consumer import EXPIRES_AFTER
from eventhub_checkpoints.stores.hook_results import Examination, ScopeRows

BALANCING_INTERVAL = 30.0
"""Seconds between two load balancing rounds of a consumer.

Source: azure-eventhub 5.15.1, `EventHubConsumerClient`, `load_balancing_interval`.
"""
LARGEST_SKEW = 5.0
"""Seconds by which two clocks may differ; the service's times have a resolution of one second."""
LATE_ROUNDS = 3
"""Rounds after which an ownership that was not renewed is late."""
SHARE_OF_ROUND = 0.1
"""Part of a load balancing round that one request may take."""


class Severity(StrEnum):
    """Severity of a finding.

    Attributes:
        WARNING: the group works, but not as well as it should, or something else may break.
        ERROR: events are lost, read twice or not read, or will be.
        UNKNOWN: something could not be examined.
    """

    WARNING = "WARNING"
    ERROR = "ERROR"
    UNKNOWN = "UNKNOWN"

    @property
    def status(self) -> int:
        """Return the exit status that stands for it."""
        return {Severity.WARNING: 1, Severity.ERROR: 2, Severity.UNKNOWN: 3}[self]


@dataclass(frozen=True, slots=True)
class Finding:
    """Defect of a consumer group, its store or its hub.

    Attributes:
        code: identifies the rule; stable.
        evidence: what was seen, in one sentence.
        remedy: the command or the change that mends it.
        partition_ids: partitions that it is about, in numeric order; empty if it is about all.
    """

    code: str
    severity: Severity
    evidence: str
    remedy: str
    partition_ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings of the consumers, and what is acceptable.

    Attributes:
        balancing_interval: the `load_balancing_interval` of the consumers, in seconds.
        expires_after: their `partition_ownership_expiration_interval`, in seconds.
        price: dollars per 10,000 requests on Blob; None: that of `PRICES`.
        budget: dollars per month that the requests may cost; None: the smallest server's price.
    """

    balancing_interval: float = BALANCING_INTERVAL
    expires_after: float = EXPIRES_AFTER
    price: float | None = None
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read about a consumer group; None where it could not be read.

    Attributes:
        backend: a key of `PRICES`; "" if the price does not depend on the requests.
        group: its rows.
        examination: its rows as they are stored; None also where the store cannot show them.
        other_groups: groups of the store with the same hub and group in another namespace, or with
            the same namespace and hub; read where this one has no rows.
        properties: of each partition of the hub, read after the rows.
        failures: the error of each step that failed: `store`, `probe`, `hub` or `consumer_group`.
        clock_skew: seconds by which the store's clock is ahead of this process's.
        list_seconds, claim_seconds: duration of a list of ownerships, and of a claim.
        checkpoint_rate: checkpoints per second of the whole group.
        unchecked: one sentence for each thing that could not be examined, and is not a defect.
    """

    scope: Scope
    backend: str = ""
    group: Group | None = None
    examination: Examination | None = None
    other_groups: Sequence[Scope] = ()
    properties: Mapping[str, PartitionProperties] | None = None
    failures: Mapping[str, CheckpointStoreError] = field(default_factory=dict)
    clock_skew: float | None = None
    list_seconds: float | None = None
    claim_seconds: float | None = None
    checkpoint_rate: float | None = None
    unchecked: Sequence[str] = ()


Rule = Callable[[Facts, Limits], Iterator[Finding]]


def findings(facts: Facts, limits: Limits | None = None) -> list[Finding]:
    """Return the findings of all rules, those with the highest severity first."""
    limits = limits or Limits()
    found = [finding for rule in RULES for finding in rule(facts, limits)]
    order = [Severity.ERROR, Severity.UNKNOWN, Severity.WARNING]
    return sorted(found, key=lambda finding: order.index(finding.severity))


def status(found: Sequence[Finding]) -> int:
    """Return the exit status of sorted findings: that of the first one; 0 if there is none."""
    return found[0].severity.status if found else 0


def failures(facts: Facts, _limits: Limits) -> Iterator[Finding]:
    """Find that store or hub cannot be used."""
    for step, error in facts.failures.items():
        evidence = str(error)
        if step == "consumer_group":
            yield Finding(
                "consumer_group_missing",
                Severity.ERROR,
                evidence,
                f"create the consumer group {facts.scope.consumer_group!r}, or name another one "
                "with --group",
            )
        elif step == "hub" and isinstance(error, HubUnavailableError):
            yield Finding(
                "hub_unreachable", Severity.UNKNOWN, evidence, "check the name and the network"
            )
        elif step == "hub":
            yield Finding(
                "hub_refused", Severity.ERROR, evidence, "correct --hub, or the right to listen"
            )
        elif isinstance(error, StoreUnavailableError):
            yield Finding(
                "store_unreachable", Severity.UNKNOWN, evidence, "check the address and the network"
            )
        elif isinstance(error, StoreNotReadyError):
            yield Finding(
                "store_not_ready", Severity.ERROR, evidence, "create it: store.create() in Python"
            )
        elif isinstance(error, StoreAccessError):
            yield Finding(
                "store_refused", Severity.ERROR, evidence, "grant the right that is named"
            )
        else:
            yield Finding("store_failed", Severity.ERROR, evidence, "see the message")


def clocks(facts: Facts, limits: Limits) -> Iterator[Finding]:
    """Find that the store's clock differs from this machine's."""
    skew = facts.clock_skew
    if skew is None or abs(skew) <= LARGEST_SKEW:
        return
    # Stores of other packages compare the store's times with the consumer's clock.
    is_error = abs(skew) >= limits.expires_after / 2
    yield Finding(
        "clock_skew",
        Severity.ERROR if is_error else Severity.WARNING,
        f"the store's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this "
        "machine's; consumers with another package's store take or keep partitions by it",
        "synchronise this machine's clock (chronyc makestep, or w32tm /resync)",
    )


SETTINGS = {
    "versioning": (
        "the account keeps a version of a blob for every renewal and checkpoint, and lists become "
        "slow",
        "az storage account blob-service-properties update --enable-versioning false",
    ),
    "soft_delete": (
        "the account keeps deleted blobs (soft delete)",
        "az storage account blob-service-properties update --enable-delete-retention false",
    ),
    "hierarchical_namespace": (
        "the account has a hierarchical namespace, whose lists also contain folders",
        "move the group to an account without one: ehcp migrate --help",
    ),
}
"""Evidence and remedy for each setting of a Blob account."""


def settings(facts: Facts, _limits: Limits) -> Iterator[Finding]:
    """Find settings of the storage that checkpoints should not have."""
    stored = facts.examination.settings if facts.examination else {}
    for name, (evidence, remedy) in SETTINGS.items():
        if stored.get(name):
            yield Finding(name, Severity.WARNING, evidence, remedy)


def unreadable_rows(facts: Facts, _limits: Limits) -> Iterator[Finding]:
    """Find rows that a list leaves out."""
    if facts.examination is None:
        return
    rows = facts.examination.rows
    skipped = [*rows.ownerships.skipped, *rows.checkpoints.skipped]
    if skipped:
        yield Finding(
            "unreadable_rows",
            Severity.WARNING,
            f"{some(skipped, '; ')}: consumers ignore such rows",
            "find out who wrote them; the next checkpoint of a consumer replaces one without a "
            "position, and store.delete_partition() in Python deletes others",
        )


def other_spellings(facts: Facts, _limits: Limits) -> Iterator[Finding]:
    """Find rows of the same group under names in another case."""
    for spelling in facts.examination.spellings if facts.examination else ():
        count = len(spelling.ownerships.rows) + len(spelling.checkpoints.rows)
        yield Finding(
            "other_spelling",
            Severity.WARNING,
            f"the group also has rows ({count}) under {spelling.scope}, as Java, Go and Rust write "
            "names; consumers with names in lower case do not see them",
            "let all consumers use one spelling (name_case='as-typed'), and merge the rows: "
            "ehcp migrate --help",
        )


def two_owners(facts: Facts, limits: Limits) -> Iterator[Finding]:
    """Find partitions with a live owner under each of two spellings."""
    if facts.examination is None or facts.group is None:
        return
    for spelling in facts.examination.spellings:
        others = live_owners(spelling, limits.expires_after)
        own = facts.group.live_owners
        both = in_order(id_ for id_ in own.keys() & others if own[id_] != others[id_])
        if both:
            named = some(f"{id_} ({own[id_]} and {others[id_]})" for id_ in both)
            yield Finding(
                "two_owners",
                Severity.ERROR,
                f"{partitions(both)} with two live owners, who disconnect each other: {named}",
                f"stop the consumers that write {spelling.scope}, or those that do not",
                both,
            )


def live_owners(rows: ScopeRows, expires_after: float) -> dict[str, str]:
    """Return the owner of each partition that has a live one, on the store's clock."""
    listing = rows.ownerships
    times = [row.last_modified_time for row in listing.rows]
    now = listing.server_now if listing.server_now is not None else max(times, default=0.0)
    return {
        row.partition_id: row.owner_id
        for row in listing.rows
        if row.owner_id and now - row.last_modified_time <= expires_after
    }


def owners(facts: Facts, limits: Limits) -> Iterator[Finding]:
    """Find partitions without a live owner, and owners that are dead or late."""
    group = facts.group
    if group is None:
        return
    if not group.partition_ids:
        known = f"; it has rows of {some(map(str, facts.other_groups))}"
        yield Finding(
            "no_rows",
            Severity.WARNING,
            f"the store has no rows of {facts.scope}" + (known if facts.other_groups else ""),
            "start the consumers, or correct --store, --hub and --group",
        )
        return
    if dead := in_order(id_ for id_, row in group.ownerships.items() if row.is_dead):
        named = some(
            f"{id_} ({group.ownerships[id_].owner_id}, {group.ownerships[id_].age:.0f} s)"
            for id_ in dead
        )
        yield Finding(
            "dead_owner",
            Severity.WARNING,
            f"{partitions(dead)} owned by consumers that no longer renew: {named}",
            "ehcp delete --owners --execute",
            dead,
        )
    expected = in_order(facts.properties) if facts.properties else group.partition_ids
    live = group.live_owners
    unowned = [id_ for id_ in expected if id_ not in live]
    if not live:
        yield Finding(
            "group_idle",
            Severity.WARNING,
            f"no consumer of {facts.scope} is alive: all ownerships are released, or older than "
            f"{limits.expires_after:g} s",
            "start the consumers",
        )
    elif unowned:
        yield Finding(
            "unowned",
            Severity.WARNING,
            f"{partitions(unowned)} without a live owner: {some(unowned)}",
            "look again after two load balancing intervals; then restart the consumers",
            unowned,
        )
    late = LATE_ROUNDS * limits.balancing_interval
    if overdue := in_order(id_ for id_ in live if group.ownerships[id_].age > late):
        yield Finding(
            "late_renewal",
            Severity.WARNING,
            f"{partitions(overdue)} whose live owner has not renewed for {LATE_ROUNDS} load "
            f"balancing intervals, {late:g} s: {some(overdue)}",
            "look at the consumer's log, or pass its --balancing-interval",
            overdue,
        )


def shares(facts: Facts, _limits: Limits) -> Iterator[Finding]:
    """Find members that own more than one partition above the fair share."""
    members = facts.group.members if facts.group else []
    if not members:
        return
    fair = sum(len(member.partition_ids) for member in members) / len(members)
    unfair = [member for member in members if len(member.partition_ids) > fair + 1]
    if unfair:
        named = some(f"{member.owner_id} owns {len(member.partition_ids)}" for member in unfair)
        yield Finding(
            "unfair_share",
            Severity.WARNING,
            f"the fair share of {len(members)} members is {fair:.1f} partitions, and {named}",
            "load_balancing_strategy='balanced' in the consumers; or restart the member with most",
        )


def positions(facts: Facts, _limits: Limits) -> Iterator[Finding]:
    """Find checkpoints that the hub does not have."""
    if facts.group is None or facts.properties is None:
        return
    closed, ahead, expired, wrong = [], [], [], []
    refused: list[str] = []
    unread: list[str] = []
    for id_ in in_order(facts.group.checkpoints.keys() & facts.properties.keys()):
        row, here = facts.group.checkpoints[id_], facts.properties[id_]
        position, last = Position.of(row), here.next_sequence_number - 1
        number, offset = position.sequence_number, position.offset
        if position.is_closed:
            closed.append(id_)
        elif number is None:
            if problem := refusal(offset, here):
                refused.append(f"{id_} ({problem})")
            elif is_unread(position, here):
                unread.append(f"{id_} (offset {offset})")
        elif number > last:
            ahead.append(f"{id_} ({number}, newest {last})")
        elif number < here.first_sequence_number - 1:
            lost = here.first_sequence_number - 1 - number
            expired.append(f"{id_} ({lost} events lost)")
        elif is_unread(position, here):
            unread.append(f"{id_} (offset {offset})")
        elif number == last and is_another_offset(offset, here):
            wrong.append(f"{id_} ({offset}, expected {here.last_enqueued_offset})")
        elif meaning_of(offset) is None and (problem := refusal(offset, here)):
            wrong.append(f"{id_} ({problem})")
    if closed:
        yield Finding(
            "checkpoint_closed",
            Severity.WARNING,
            f"{partitions(closed)} without a position here, because it was moved to or from "
            f"another store: {some(closed)}",
            "stop the consumers of this store; ehcp move continues a move that was interrupted",
            closed,
        )
    yield from of_positions(
        "checkpoint_ahead",
        ahead,
        "with a checkpoint ahead of the newest event, as after a hub was created anew",
        "reset --to-earliest",
    )
    yield from of_positions(
        "checkpoint_expired",
        expired,
        "with events that expired before they were processed",
        "reset --to-earliest",
    )
    yield from of_positions(
        "never_processed",
        unread,
        "with a checkpoint that was copied from a lease of which nothing was processed, so that "
        "event 0 is skipped",
        "reset --to-earliest",
    )
    yield from of_positions(
        "wrong_offset",
        wrong,
        "with a checkpoint whose offset is not that of its event",
        "reset --to-current",
    )
    yield from of_positions(
        "offset_refused",
        refused,
        "with a checkpoint without a sequence number, whose offset the hub does not have: nothing "
        "is read",
        "reset --to-earliest",
    )


def of_positions(code: str, named: Sequence[str], what: str, verb: str) -> Iterator[Finding]:
    """Yield the finding about checkpoints of these partitions, if there are any."""
    if named:
        ids = [text.partition(" ")[0] for text in named]
        yield Finding(
            code,
            Severity.ERROR,
            f"{partitions(ids)} {what}: {some(named)}",
            f"ehcp {verb} --partitions {','.join(ids)} --execute",
            ids,
        )


def is_another_offset(offset: str, properties: PartitionProperties) -> bool:
    """Return whether an offset is known not to be that of the newest event."""
    newest = properties.last_enqueued_offset
    is_known = not properties.is_empty and meaning_of(newest) is None
    return is_known and meaning_of(offset) is None and offset != newest


def is_unread(position: Position, properties: PartitionProperties) -> bool:
    """Return whether a checkpoint was copied from a lease that never processed anything.

    Consumers would go on after event 0, or after the newest one. Beside `"-1"`, 0 may be right: so
    `ehcp reset` stores the beginning of a partition whose first retained event is 1.
    """
    number, meaning = position.sequence_number, meaning_of(position.offset)
    if properties.is_empty or meaning not in (Meaning.START, Meaning.END):
        return False
    if number == 0:
        return properties.first_sequence_number == 0
    return meaning is Meaning.END and (number is None or number < 0)


def refusal(offset: str, properties: PartitionProperties) -> str | None:
    """Explain why the partition refuses an offset; None if it may accept it, or there is none."""
    newest = properties.last_enqueued_offset
    if is_of_another_form(offset, newest):
        return f"offset {offset}, and those of the hub are decimal, as {newest}"
    return refused_by_hub(offset, newest, properties.next_sequence_number - 1)


def no_such_partition(facts: Facts, _limits: Limits) -> Iterator[Finding]:
    """Find rows of partitions that the hub does not have."""
    if facts.group is None or facts.properties is None:
        return
    missing = in_order(set(facts.group.partition_ids) - facts.properties.keys())
    if missing:
        yield Finding(
            "no_such_partition",
            Severity.ERROR if has_live(facts.group, missing) else Severity.WARNING,
            f"{partitions(missing)} with rows that the hub does not have: {some(missing)}",
            "ehcp doctor --fix --execute deletes their rows"
            if not has_live(facts.group, missing)
            else "stop their consumers: they read another hub with this store",
            missing,
        )


def has_live(group: Group, partition_ids: Iterable[str]) -> bool:
    """Return whether one of these partitions has a live owner."""
    return not group.live_owners.keys().isdisjoint(partition_ids)


def incomplete_records(facts: Facts, _limits: Limits) -> Iterator[Finding]:
    """Find checkpoints without an offset, or without a sequence number."""
    if facts.group is None:
        return
    rows = facts.group.checkpoints
    properties = facts.properties or {}
    no_offset = in_order(id_ for id_, row in rows.items() if needs_offset(row, properties.get(id_)))
    if no_offset:
        yield Finding(
            "no_offset",
            Severity.WARNING,
            f"{partitions(no_offset)} with a checkpoint without an offset, which the official "
            f"Python store cannot resume from: {some(no_offset)}",
            "ehcp doctor --fix --execute adds it where nobody is consuming; the next checkpoint "
            "of a consumer has one",
            no_offset,
        )
    no_number = in_order(id_ for id_, row in rows.items() if needs_number(row, properties.get(id_)))
    if no_number:
        yield Finding(
            "no_sequence_number",
            Severity.WARNING,
            f"{partitions(no_number)} with a checkpoint without a sequence number, by which KEDA "
            f"fails and lag is unknown: {some(no_number)}",
            "let a consumer store a checkpoint; ehcp peek PARTITION shows where it would go on",
            no_number,
        )


def needs_offset(row: Row, properties: PartitionProperties | None) -> bool:
    """Return whether a checkpoint has a sequence number only, and no word that says the same."""
    position = Position.of(row)
    number, meaning = position.sequence_number, meaning_of(position.offset)
    if number is None or meaning is None:
        return False
    if meaning is Meaning.UNKNOWN or properties is None:
        return meaning is Meaning.UNKNOWN
    is_same = meaning is Meaning.START and number < properties.first_sequence_number
    return not is_same and not is_unread(position, properties)


def needs_number(row: Row, properties: PartitionProperties | None) -> bool:
    """Return whether a checkpoint has an offset only, from which a consumer can go on."""
    position = Position.of(row)
    if position.sequence_number is not None:
        return False
    if properties is None:
        return True
    return not is_unread(position, properties) and not refusal(position.offset, properties)


def latency(facts: Facts, limits: Limits) -> Iterator[Finding]:
    """Find that a request takes a large part of a load balancing round."""
    interval = limits.balancing_interval
    measured = {"slow_list": facts.list_seconds, "slow_claim": facts.claim_seconds}
    for code, seconds in measured.items():
        if seconds is None or seconds <= SHARE_OF_ROUND * interval:
            continue
        yield Finding(
            code,
            Severity.ERROR if seconds >= interval else Severity.WARNING,
            f"a {code.removeprefix('slow_')} took {seconds:.2g} s, and consumers balance their "
            f"load every {interval:g} s",
            "use a store in the consumers' region and one container or table prefix a group, or "
            "increase load_balancing_interval",
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of the requests that a group makes.

    Attributes:
        dollars: per month.
        requests: per second, by kind.
        price: of 10,000 requests, in dollars.
        source: of the price, and when it was read.
    """

    dollars: float
    requests: Mapping[str, float]
    price: float
    source: str


def cost(facts: Facts, limits: Limits) -> Cost | None:
    """Return what the requests of the live members cost; None where requests have no price."""
    if facts.backend != "blob" or facts.group is None:
        return None
    members = facts.group.members
    owned = sum(len(member.partition_ids) for member in members)
    requests = balancing_requests(len(members), owned, limits.balancing_interval)
    if facts.checkpoint_rate is not None:
        requests["checkpoints"] = facts.checkpoint_rate
    listed = PRICES["blob"]
    return Cost(
        per_month("blob", requests, limits.price),
        requests,
        listed.dollars if limits.price is None else limits.price,
        f"{listed.source}, read on {PRICES_READ}" if limits.price is None else "--price",
    )


def too_expensive(facts: Facts, limits: Limits) -> Iterator[Finding]:
    """Find that the requests cost more than a server would, or than the budget."""
    estimate = cost(facts, limits)
    budget = SMALLEST_SERVER if limits.budget is None else limits.budget
    if estimate is None or estimate.dollars <= budget:
        return
    rates = ", ".join(f"{rate:.3g} {kind}" for kind, rate in estimate.requests.items())
    than = "the smallest server" if limits.budget is None else "the budget"
    yield Finding(
        "cost",
        Severity.WARNING,
        f"the group's requests ({rates} a second) cost ${estimate.dollars:,.2f} a month, more "
        f"than {than}, ${budget:,.2f}",
        "store checkpoints less often, such as every(seconds=30); increase "
        "load_balancing_interval; or move to another store: ehcp migrate --help",
    )


RULES: Sequence[Rule] = (
    failures,
    clocks,
    settings,
    unreadable_rows,
    other_spellings,
    two_owners,
    owners,
    shares,
    positions,
    no_such_partition,
    incomplete_records,
    latency,
    too_expensive,
)
