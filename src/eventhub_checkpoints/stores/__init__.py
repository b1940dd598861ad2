"""Checkpoint stores: the base class, and a folder for each backend.

The base class, in `_async` (edited) and `_sync` (derived):

- `hooks`: the four methods that a backend implements. `hook_runner`: calls them with time limits,
  retries and error mapping.
- `ownership`: list, claim, renew, release. `checkpoints`: list, update. `base`: the two together.
- `abilities`: what some stores can do besides.

What it decides, without I/O:

- `hook_results`: what hooks return. `record_format`: records as other libraries write them.
- `partition_state`: what a store knows of each partition; `lease` of an ownership, and
  `checkpoint_guard` of a checkpoint, which does not go back. `clock`: the backend's clock.

For several backends: `credentials`, `per_process_client`, `unreachable` (why there is no
connection), `configuration` and `configuration_backends` (stores by a mapping).

The backends: `blob`, `sql`, `redis`, `cassandra`, `memory`; `legacy` reads what iothub-react wrote.
"""
