"""Checkpointer, CoalescingCheckpointStore and EventProcessor.

Decisions, without I/O:

- `watermark`: the position up to which all events are finished. `deliveries`: which events of a
  batch are. `latest`: the newest checkpoint of a program.
- `policy`: when to save; `plan` and `trailing` are its plans for one session. `write_state`: what
  is saved, what is being written, when to write again.
- `held_partitions`: which partitions a client holds.
- `start_choice`, `invalid_positions`: where a partition starts, and positions that the hub lacks.
- `options`, `validation`: arguments of an EventProcessor. `statistics`, `metrics`: what `stats`
  returns.

In `_async` (edited) and `_sync` (derived):

- `checkpointer`, `coalescing`, `processor`: the public classes.
- `session`, `sessions`: the time for which a client holds a partition. `in_flight_event`: an event
  that is being processed.
- `checkpoint_writer`: writes in the background what is due. `write`: one write. `saved_position`:
  what is saved of a session. `write_buffer`: checkpoints that a coalescing store holds back.
- `dispatcher`: calls the user's processor. `partition_handler`, `checkpoint_manager`: what it is
  given. `delivery_tracker`: its events until they are finished.
- `client_callbacks`: what an EventProcessor passes to its client. `receive_loop`: running that
  client. `handler_task`: running a handler to its end.
- `start_positions`, `start_position_store`, `position_validator`: where the client starts.
"""
