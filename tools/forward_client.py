"""Client of the randomized model: its store's requests, and events around them."""

from functools import partial
from typing import TYPE_CHECKING

from eventhub_checkpoints.errors import StoreUnavailableError
from eventhub_checkpoints.memory import MemoryCheckpointStore
from eventhub_checkpoints.records import Checkpoint, Ownership, Scope
from eventhub_checkpoints.stores.hook_results import Conflict, Listing, Seen, Written
from forward_judge import Update

if TYPE_CHECKING:
    from forward_model import Model

SCOPE = Scope("ns.servicebus.windows.net", "orders", "$Default")


class CutError(BaseException):
    """Ends a call from outside, as cancelling its task does."""


class Client(MemoryCheckpointStore):
    """Store of one client; the model takes part in its requests.

    Attributes:
        update: current call, by partition.
        etags: all etags that were won, by partition.
        claims: claims of the unbroken series to which the newest one belongs.
    """

    def __init__(self, model: "Model", name: str) -> None:
        super().__init__(model.rows, on_stale="raise")
        self.name = name
        self.model = model
        self.update: dict[str, Update] = {}
        self.etags: dict[str, list[str]] = {}
        self.claims: dict[str, list[str]] = {}
        self.checkpoints_shown: Listing[Checkpoint] = Listing([])
        self.ownerships_shown: Listing[Ownership] = Listing([])

    def claim(self, owner_id: str, etags: dict[str, str]) -> list[str]:
        """Claim some partitions over these etags; return those that were won."""
        proposals = [
            SCOPE.as_dict() | {"partition_id": key, "owner_id": owner_id, "etag": etag}
            for key, etag in etags.items()
        ]
        won = {row["partition_id"]: row["etag"] for row in self.claim_ownership(proposals)}
        for key, etag in won.items():
            before = self.claims.get(key, [])
            self.etags.setdefault(key, []).append(etag)
            self.claims[key] = [*(before if etags[key] in before else []), etag]
            if not owner_id:
                self.claims[key] = []
        return list(won)

    def read_checkpoints(self, scope: Scope) -> Listing[Checkpoint]:
        listing = super().read_checkpoints(scope)
        self.model.meanwhile()
        self.checkpoints_shown = listing
        return listing

    def read_ownerships(self, scope: Scope) -> Listing[Ownership]:
        listing = super().read_ownerships(scope)
        self.model.meanwhile()
        self.ownerships_shown = listing
        return listing

    def write_checkpoint(self, checkpoint: Checkpoint, seen: str | Seen) -> Written | Conflict:
        model, update = self.model, self.update[checkpoint.partition_id]
        update.requests += 1
        fate = model.fate()
        model.meanwhile()
        answer: Written | Conflict | None = None
        if fate != "late":
            answer = self.carry_out(update, checkpoint, seen)
        elif isinstance(seen, str):
            # A late request that compares with no version could succeed after another write: a
            # documented exception of the guarantee, dropped here.
            model.late.append(partial(self.carry_out, update, checkpoint, seen))
        model.meanwhile()
        model.note(f"  {self.name} {named(seen)} -> {named(answer)}, {fate}")
        if fate == "answered" and answer is not None:
            model.judge.answered(update, answer)
            return answer
        model.judge.not_answered(update)
        raise CutError if model.chance(0.3) else StoreUnavailableError("no answer")

    def carry_out(
        self, update: Update, checkpoint: Checkpoint, seen: str | Seen
    ) -> Written | Conflict:
        """Carry out the request as the server does."""
        replaced = self.model.stored(checkpoint.partition_id)
        answer = super().write_checkpoint(checkpoint, seen)
        if isinstance(answer, Written):
            self.model.judge.carried_out(update, answer.version, replaced)
        return answer


def named(what: Checkpoint | Written | Conflict | Seen | str | None) -> str:
    """Return a short form of a row, version or answer."""
    if isinstance(what, Conflict):
        return f"conflict with {named(what.stored)}"
    if isinstance(what, Checkpoint):
        return f"{what.sequence_number}@{what.version[:4]}"
    if isinstance(what, Written):
        return f"written as {what.version[:4]}"
    return what[:4] if isinstance(what, str) else str(what)
