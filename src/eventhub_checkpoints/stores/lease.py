"""What one store knows of its own claim of one partition."""

from dataclasses import dataclass, replace

from eventhub_checkpoints.records import RELEASED, Ownership

REMEMBERED_ETAGS = 32


@dataclass(frozen=True, slots=True)
class Hold:
    """A claim from the time it was won until it is lost or released.

    Attributes:
        owner_id: who holds the partition through this store; `""` when nobody does.
        taken: whether the list that follows the taking is still to come.
        ever: whether this store has ever held the partition.
        confirmed: the row as the server last confirmed it, its time on this process's clock.
        winner: who won `etags`.
        etags: those won in one unbroken row of claims, the newest last. A release that comes
            late may use the newest, but must not undo a newer claim of the same client.
    """

    owner_id: str = RELEASED
    taken: bool = False
    ever: bool = False
    confirmed: Ownership | None = None
    winner: str = RELEASED
    etags: tuple[str, ...] = ()

    def won(self, row: Ownership, previous_etag: str | None) -> "Hold":
        """A claim, a renewal or a release over `previous_etag` was confirmed."""
        if row.owner_id == RELEASED:
            return Hold(ever=self.ever, confirmed=row)
        goes_on = row.owner_id == self.winner and previous_etag in self.etags
        return Hold(
            owner_id=row.owner_id,
            taken=self.taken or row.owner_id != self.owner_id,
            ever=True,
            confirmed=row,
            winner=row.owner_id,
            etags=(*(self.etags if goes_on else ()), row.etag)[-REMEMBERED_ETAGS:],
        )

    def settled(self) -> "Hold":
        """The list that follows the taking has come."""
        return replace(self, taken=False)

    def lost(self) -> "Hold":
        """The partition is no longer this store's."""
        return replace(self, owner_id=RELEASED, taken=False, confirmed=None)

    def listed(self, row: Ownership | None) -> "Hold":
        """A list of ownerships showed the partition's row, or that there is none."""
        if row is None or row.owner_id != self.owner_id:
            return replace(self.lost(), confirmed=row)
        return replace(self, confirmed=row)

    def has_won(self, etag: str | None) -> bool:
        """Whether the etag is one of this claim's."""
        return etag in self.etags

    def newer_etag(self, etag: str | None) -> str | None:
        """The newest etag of the claim that also won this one; None if this is the newest."""
        if etag not in self.etags or self.etags[-1] == etag:
            return None
        return self.etags[-1]

    def renewed_by(self, owner_id: str, etag: str | None) -> Ownership | None:
        """The confirmed row, if a claim by this owner with this etag renews it."""
        row = self.confirmed
        if row is None or not owner_id or (row.owner_id, row.etag) != (owner_id, etag):
            return None
        return row
