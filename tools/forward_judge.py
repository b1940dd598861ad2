"""Judge of what stores did to the checkpoints of a few partitions, from the actual events.

It shares no logic with the stores: it knows who wrote every version and what every store was shown,
and derives what "no checkpoint goes back" requires of such a store. The rules are those of
guarantee G3 in `docs/reference/guarantees.md`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from eventhub_checkpoints.records import Checkpoint, Ownership
from eventhub_checkpoints.stores.hook_results import Conflict, Written

NO_ROW = "no row"
TRIES = 4
NO_BATCH: tuple[int, set[str]] = (-1, set())


class ForwardError(BaseException):
    """A store broke the guarantee; a BaseException, so that no store handles it."""


@dataclass(slots=True)
class View:
    """State of one partition as one store was shown it.

    Attributes:
        base: version that it may overwrite; None before it was shown anything.
        met: highest sequence number of another writer since it adopted a row.
        changed: step of its last write that ended.
        adopted: step of the last list from which it took its position.
        writing: whether a write of it is in progress.
        claimed: step of its last claim that ended.
        holds: whether it has reason to believe that it owns the partition.
        ever: whether it ever owned it.
        due: step of the claim whose first list is still to come.
        doubted: step of the last list that has shown it as lost; a client closes it only after its
            next claims, and not at all if one of them wins it back. Then it is certain to have
            opened it anew when it lists checkpoints while it proposes no other.
    """

    base: str | None = None
    met: int | None = None
    changed: int = -1
    adopted: int = -1
    writing: bool = False
    claimed: int = -1
    holds: bool = False
    ever: bool = False
    due: int | None = None
    doubted: int | None = None

    def lose(self) -> None:
        """Record that the store no longer holds the partition."""
        self.holds = False
        self.due = self.doubted = None


@dataclass(slots=True)
class Update:
    """Call of `update_checkpoint`, and the outcome of its requests."""

    store: str
    partition_id: str
    sequence_number: int
    forced: bool
    requests: int = 0
    conflicts: int = 0
    unanswered: int = 0
    stored: int = 0
    hopeless: bool = field(default=False)


class Judge:
    """Records every event in order and raises `ForwardError` at the first wrong one.

    Attributes:
        seen: number of events by kind, to show that a campaign has covered them.
    """

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self._writers: dict[str, str] = {}
        self._views: dict[tuple[str, str], View] = {}
        self._proposed: dict[str, tuple[int, set[str]]] = {}
        self._step = 0

    def tick(self) -> int:
        """Return the number of the next step."""
        self._step += 1
        return self._step

    def view(self, store: str, partition_id: str) -> View:
        """Return the view that a store has of a partition."""
        return self._views.setdefault((store, partition_id), View())

    def written_by(self, version: str, writer: str) -> None:
        """Record who wrote a version."""
        self._writers[version] = writer

    def claimed(self, store: str, partition_id: str, won: bool) -> None:
        """Record the result of a claim."""
        view = self.view(store, partition_id)
        view.claimed = self.tick()
        if not won:
            view.lose()
        elif not view.holds:
            view.holds = view.ever = True
            view.due = view.claimed

    def proposed(self, store: str, partition_ids: Iterable[str]) -> None:
        """Record that a store begins a batch of claims."""
        self._proposed[store] = self.tick(), set(partition_ids)

    def given_up(self, store: str, partition_id: str) -> None:
        """Record that a batch of claims omitted the partition, or that it was released."""
        self.claimed(store, partition_id, won=False)

    def ownerships_listed(self, store: str, began: int, rows: Mapping[str, Ownership]) -> None:
        """Record the end of a list of ownerships."""
        proposed_at, _ = self._proposed.get(store, NO_BATCH)
        for (name, partition_id), view in self._views.items():
            row = rows.get(partition_id)
            is_others = row is None or row.owner_id != store
            if name != store or view.claimed >= began:
                continue
            if view.doubted is not None and not view.holds and proposed_at < view.doubted:
                view.lose()  # nothing was claimed since the last list, so everything was closed
            elif view.holds and not is_others:
                continue
            elif view.holds or view.doubted is not None:
                view.lose()
                view.doubted = self.tick()

    def checkpoints_listed(self, store: str, began: int, rows: Mapping[str, Checkpoint]) -> None:
        """Record the end of a list of checkpoints; what the store wrote meanwhile is newer."""
        _, proposed = self._proposed.get(store, NO_BATCH)
        for (name, partition_id), view in self._views.items():
            if name != store:
                continue
            is_opened = view.doubted is None or proposed == {partition_id}
            is_due = view.due is not None and began > view.due and is_opened
            if view.changed < began and not view.writing:
                row = rows.get(partition_id)
                if is_due or not view.ever or view.base is None:
                    view.base = row.version if row else NO_ROW
                    view.met = None
                    view.adopted = self.tick()
                    self.seen["adopted"] += 1
                elif view.adopted < began:
                    self._met(store, view, row)
            if is_due:
                view.due = view.doubted = None

    def _met(self, store: str, view: View, row: Checkpoint | None) -> None:
        if row is None or row.version == view.base:
            return
        if self._writers[row.version] == store:
            view.base = row.version
            self.seen["recognised"] += 1
        elif row.sequence_number is not None:
            view.met = max(row.sequence_number, -1 if view.met is None else view.met)
            self.seen["met"] += 1

    def began(self, update: Update) -> None:
        """Record the start of a call; a write below a known checkpoint must send nothing."""
        view = self.view(update.store, update.partition_id)
        view.writing = True
        is_below = view.met is not None and update.sequence_number < view.met
        update.hopeless = is_below and not update.forced

    def ended(self, update: Update) -> None:
        """Record the end of a call, whatever its outcome."""
        self.view(update.store, update.partition_id).writing = False

    def carried_out(self, update: Update, version: str, replaced: Checkpoint | None) -> None:
        """Record that a write replaced a row: a higher one only if it was its own or its base."""
        view = self.view(update.store, update.partition_id)
        self.written_by(version, update.store)
        update.stored += 1
        if update.forced or replaced is None or replaced.sequence_number is None:
            return
        writer = self._writers[replaced.version]
        is_known = writer == update.store or replaced.version == view.base
        if update.sequence_number < replaced.sequence_number and not is_known:
            raise ForwardError(
                f"{update.store} put {update.sequence_number} over {replaced.sequence_number} of "
                f"{writer}, which it had not adopted"
            )

    def answered(self, update: Update, answer: Written | Conflict) -> None:
        """Record that the store received an answer."""
        view = self.view(update.store, update.partition_id)
        view.changed = self.tick()
        if isinstance(answer, Written):
            view.base = answer.version
            view.met = None if update.forced else view.met
            view.writing = False  # a forced call goes on, to read who owns the partition
        else:
            update.conflicts += 1
            self._met(update.store, view, answer.stored)

    def not_answered(self, update: Update) -> None:
        """Record that the store received no answer."""
        self.view(update.store, update.partition_id).changed = self.tick()
        update.unanswered += 1

    def succeeded(self, update: Update) -> None:
        """Require that the returned call's row was stored at some moment, at minimum cost."""
        self.seen["written"] += 1
        self._require(update, update.stored >= 1, "returned, and nothing was stored")
        self._require(update, not update.hopeless, "was below a row that it had been shown")
        self._bound(update)

    def refused(self, update: Update) -> None:
        """Require that a refused call has met another writer's higher row."""
        self.seen["refused"] += 1
        met = self.view(update.store, update.partition_id).met
        self._require(
            update,
            met is not None and met > update.sequence_number,
            f"was refused, and the highest row of another writer that was shown is {met}",
        )
        self._require(update, not update.forced, "was refused although it was forced")
        self._require(update, not (update.hopeless and update.requests), "sent a request")
        self._bound(update)

    def gave_up(self, update: Update) -> None:
        """Require that a call ended with a retryable error only after four conflicts."""
        self.seen["gave up"] += 1
        self._require(update, update.conflicts == TRIES, "gave up too early")
        self._bound(update)

    def _bound(self, update: Update) -> None:
        disturbed = update.conflicts + update.unanswered
        self._require(update, bool(disturbed) or update.requests <= 1, "sent more than one request")
        self._require(
            update, update.requests <= TRIES + update.unanswered, "sent too many requests"
        )

    def _require(self, update: Update, holds: bool, sentence: str) -> None:
        if not holds:
            raise ForwardError(f"{update} {sentence}")
