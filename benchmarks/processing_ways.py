"""The ways of consuming: which checkpoints are written, and by whom."""

NONE, OFFICIAL, COALESCING, TRACKED = ("none", "official", "coalescing", "tracked")
"""An event at a time: no checkpoint; one for each by the official store; the same by ours, with
`CoalescingCheckpointStore` before it; each tracked by a `Checkpointer`."""
NONE_BATCHES, OFFICIAL_BATCHES, PROCESSOR = ("none-batches", "official-batches", "processor")
"""A batch at a time: no checkpoint; one for each batch by the official store; `EventProcessor`."""

HANDLERS = {
    NONE: "plain",
    OFFICIAL: "updated",
    COALESCING: "updated",
    TRACKED: "tracked",
    NONE_BATCHES: "plain_batch",
    OFFICIAL_BATCHES: "updated_batch",
}
"""The methods that are handlers of a client; an `EventProcessor` has its own."""
WAYS = (*HANDLERS, PROCESSOR)
BY_OFFICIAL = (OFFICIAL, OFFICIAL_BATCHES)
WITHOUT = (NONE, NONE_BATCHES)
BY_BATCH = (NONE_BATCHES, OFFICIAL_BATCHES)
FROM_THE_FIRST = {"starting_position": "-1"}
