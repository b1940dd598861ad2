"""Checkpointer, the stores that wrap another, and EventProcessor.

Decisions, without I/O:

- `watermark`: events in flight, and the position up to which all of them are finished.
- `policy`: when to save. `write_state`: what is saved, what is being written, when to write again,
  and which partitions a client holds.
- `source`: what delivers the events of a partition, one by one or in batches.
- `stall`: whether a partition has stalled, and where it hangs.
- `start_position`: where a partition starts, and positions that the hub does not have.
- `handover`: who asks for a partition, who answers, and when a request ends.
- `options`: the options of an EventProcessor. `statistics`: what `stats()` returns.

In `_async` (edited) and `_sync` (derived):

- `checkpointer`, `coalescing`, `handover`, `processor`: the public classes.
- `session`: the time for which a client holds a partition. `tracked_event`: an event that is
  being processed.
- `client_source`: a client's partition as the source of its events.
- `checkpoint_writer`: writes in the background what is due.
- `dispatcher`: calls the user's processor, and tracks the events that it was called with.
- `client_callbacks`: what an EventProcessor passes to its client. `receive_loop`: running that
  client, and its handlers to their end.
- `watchdog`: looks for stalled partitions in the background.
- `processor_store`: the store that an EventProcessor passes to its client; it shows the positions
  to start from. `position_validator`: finds positions that the hub does not have.
"""
