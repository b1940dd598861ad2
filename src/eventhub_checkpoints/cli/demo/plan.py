"""What the user asked for."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Plan:
    """What the user asked for, and how the events are shared out to the parts of the story.

    Attributes:
        store: `azurite` or the URL of a store; None for a SQLite file of the demo's own.
        consumer: the client that both consumers use, `aio` or `sync`.
        events: to publish in all.
        partitions: of the hub.
    """

    store: str | None = field(repr=False)
    consumer: str
    events: int
    partitions: int

    @property
    def sent_at_first(self) -> int:
        """Sent while the consumers share the partitions."""
        return self.events // 10

    @property
    def processed_at_the_kill(self) -> int:
        """Processed when A dies; it dies while more are being sent."""
        return self.events * 3 // 10

    @property
    def sent_at_the_kill(self) -> int:
        """Sent before the kill at the most."""
        return self.events // 2

    @property
    def consumed(self) -> int:
        """Sent while there is a consumer; the rest is Spark's."""
        return self.events * 8 // 10
