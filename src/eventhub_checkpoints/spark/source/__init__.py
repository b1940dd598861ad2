"""`format("eventhubs")` in pure Python; importing this package needs PySpark.

- `data_source`, `stream`: PySpark's interfaces. `pyspark_api`: the differences between its
  versions.
- `options`, `kafka_options`, `option_values`: the options.
- `planning`, `limits`, `advancing`: from options to ranges, of a batch and of each micro-batch.
- `grouping`, `tasks`: ranges to Spark tasks, and what a task reads.
"""

from eventhub_checkpoints.spark.source.data_source import EventHubSource

__all__ = ["EventHubSource"]
