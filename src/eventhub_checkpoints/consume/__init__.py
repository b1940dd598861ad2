"""A consumer group that is read in Arrow batches.

- `balancer`: which partitions a member claims.
- `settings`: of a member.
- `partition_reader`, `partition_batch`: batches of one partition, and their rows as events.
- `_async`, `_sync`: `member`, which claims and releases; `client`, which receives; `batches`, over
  which users iterate, and their `inbox`; `worker`, the task or thread of a partition.
"""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("receiving Arrow batches", "arrow", "pyarrow")
