"""Code that stores, processing and receive have in common; nothing here is public.

- `fields`: what a field of a record may hold. `settings`: what a store can be configured with.
- `secrets`: quoting values in messages without their secrets. `suggestions`: "did you mean".
- `configuration_tables`: tables and durations of a configuration.
- `deadline`: time that the current call has left, and pauses between attempts. `workers`: threads
  that make the calls of the main thread.
- `start_position`: where a stream starts.
- `drivers`: the check that a driver is installed.
- `client_errors`: errors of azure-eventhub as errors of this package. `client_guard`: errors for a
  client of the other kind, sync or async. `client_internals`: its private attributes.
- `_async`, `_sync`: what differs between the two: `compat` (waiting, locks, parallel calls),
  `background` (tasks and threads), `client_check`.
"""
