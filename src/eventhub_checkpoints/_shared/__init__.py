"""Code that stores, processing and receive have in common; nothing here is public.

- `arguments`: wrong calls of public functions. `callables`: functions that users pass in, and the
  kinds of them that would do nothing.
- `settings`: what a store can be configured with, validation, and "did you mean".
- `foreign_json`: JSON of others, every failure of which is a `ValueError`.
- `secrets`: quoting values in messages without their secrets. `error_messages`: the same for
  exceptions of others.
- `paths`: what is at a path that a user has named.
- `times`, `durations`: how they are written as text. `configuration_tables`: tables of a
  configuration. `texts`: values as people read them.
- `deadline`: time that the current call has left, and pauses between attempts. `workers`: threads
  that make the calls of the main thread.
- `program`: the name of the command line, as it was typed.
- `connection_string`: that of a hub, and what is said of any other.
- `clouds`: the clouds of Azure, by the domains of their hosts.
- `listening`: addresses on which a command listens.
- `connection_errors`: why there is no connection, by the error of any driver.
- `pickling`: objects that say what to pickle in their place. `per_process`: state that a forked
  child does not share with its parent.
- `partition_keys`: how long a key may be, and which partition it has.
- `start_position`: where a stream starts, and whether a hub accepts an offset. `offset_words`: the
  words that stand in place of one.
- `client`: the official client: its errors, and guards against the wrong kind, sync or async.
  `drivers`: the check that what an extra installs is there.
- `wrapping`: stores that wrap another, and what a store declares.
- `tracing`: spans and metrics of OpenTelemetry, which `telemetry` creates where its API is
  installed.
- `signals`: SIGTERM and Ctrl-C as a request to stop.
- `_async`, `_sync`: what differs between the two: `compat` (waiting, locks, parallel calls),
  `background` (tasks and threads), `client_check`, `stop_signals`.
"""
