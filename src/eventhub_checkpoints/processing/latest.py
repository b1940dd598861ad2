"""What a program has asked to be saved of one partition."""

from eventhub_checkpoints.processing.watermark import Position


class Newest:
    """The checkpoint that was asked for last, and how often one was.

    Attributes:
        count: how often; it stands for all before it.
        newest: sequence number and offset of the last; None while there is none.
    """

    __slots__ = ("count", "newest")

    def __init__(self) -> None:
        self.count = 0
        self.newest: tuple[int, str] | None = None

    @property
    def position(self) -> Position | None:
        """The last; None while there is none."""
        return self.newest and Position(*self.newest)
