"""Checkpoint stores: the base class, and a folder for each backend.

The base class, in `_async` (edited) and `_sync` (derived):

- `hooks`: the four methods that a backend implements, and the runner that calls them with time
  limits, retries and error mapping.
- `ownership`: list, claim, renew, release. `checkpoints`: list, update. `base`: the two together,
  and what some stores can do besides.

Decisions of the base class, without I/O:

- `hook_results`: what hooks return. `record_format`: records as other libraries write them.
- `partition_state`: what a store knows of each partition: the lease of its ownership, and the guard
  that keeps its checkpoint from going back.

For several backends: `connections` (credentials, a client per process, why a connection failed).
All of them by name: `backends` (the table of their URLs and extras), `suggestions` (what a wrong
URL meant), `configuration` (stores by a mapping).

The backends: `blob`, `sql`, `redis`, `cassandra`, `memory`; `legacy` reads what iothub-react wrote.
"""
