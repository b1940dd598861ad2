"""What a publisher tells about its work."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublisherStats:
    """What has become of a query's progress.

    Attributes:
        published: checkpoints written.
        with_offset: of these, the ones that carry their offset text.
        stale: positions not written because the store was further.
        failures: attempts that the store did not take; they are made again.
        waiting: last committed events that are not in the store yet, by partition id.
        stored: last events that the store is known to hold, by partition id.
    """

    published: int
    with_offset: int
    stale: int
    failures: int
    waiting: Mapping[str, int]
    stored: Mapping[str, int]
