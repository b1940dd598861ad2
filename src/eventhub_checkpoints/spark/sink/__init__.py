"""`df.write` and `writeStream` with `format("eventhubs")`; importing this package needs PySpark.

- `options`: the options. `writer`: PySpark's interfaces, and what a task does.
- `keys`: a key in each event, by which `deduplicate` drops what was sent twice.
"""

from eventhub_checkpoints.spark.validation import no_python_sources

try:
    from pyspark.sql import datasource  # noqa: F401  (checked once, before any module here needs it)
except ImportError as error:
    raise no_python_sources() from error

from eventhub_checkpoints.spark.sink.keys import deduplicate

__all__ = ["deduplicate"]
