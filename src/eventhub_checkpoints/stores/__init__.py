"""Checkpoint stores: the base class, and a folder for each backend.

The base class, in `_async` (edited) and `_sync` (derived):

- `base`: the public class, with the SDK's four methods. `abilities`: what some stores can do
  besides. `hooks`: the methods that a backend implements.
- `engine`: what runs the hooks for a store. Its parts: `ownership` (list, claim, renew, release),
  `checkpoints` (list, update, replace), and `runner`, which calls hooks with time limits, retries
  and error mapping.

Decisions of the base class, without I/O:

- `hook_results`: what hooks return. `record_format`: records as other libraries write them.
- `claim_batches`: which claims a backend sends together.
- `history_entries`: which writes get an entry in a history, and how many are kept.
- `redefinition`: what a store class may redefine, and how.
- `partition_state`: what a store knows of each partition: the lease of its ownership, and the guard
  that keeps its checkpoint from going back.

For several backends: `connections` (credentials, a client per process, why a connection failed).
All of them by name: `backends` (the table of their URLs and extras), `suggestions` (what a wrong
URL meant), `configuration` (stores by a mapping).

The backends: `blob`, `table`, `sql`, `redis`, `cassandra`, `memory`; `legacy` reads what
iothub-react wrote. `azure_storage` has what any service of a storage account shares: addresses,
credentials, requests.
"""
