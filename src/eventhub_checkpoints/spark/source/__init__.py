"""`format("eventhubs")` in pure Python; importing this package needs PySpark.

- `data_source`, `stream`: PySpark's interfaces, for batches and for micro-batches.
- `options`: the options.
- `batches`: ranges of a batch, and of each micro-batch within its limits; what a task reads.
- `sizes`: sizes of the next events, for a limit in bytes.
"""

from eventhub_checkpoints.spark.validation import no_python_sources

try:
    from pyspark.sql import datasource  # noqa: F401  (checked once, before any module here needs it)
except ImportError as error:
    raise no_python_sources() from error

from eventhub_checkpoints.spark.source.data_source import EventHubSource

__all__ = ["EventHubSource"]
