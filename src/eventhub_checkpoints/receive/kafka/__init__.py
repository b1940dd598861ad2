"""Receiving over Kafka: a hub by its Kafka endpoint, or a topic of any Kafka cluster.

- `address`: a hub or topic, and queries about its partitions and offsets.
- `client`: a consumer of librdkafka, its settings and its errors. `records`: records as columns.
"""

from eventhub_checkpoints.errors import MissingDriverError

try:
    import confluent_kafka  # noqa: F401  (checked once, before any module here needs it)
except ImportError as error:
    raise MissingDriverError.of_extra("transport=kafka", "kafka") from error

from eventhub_checkpoints.receive.kafka.address import KafkaAddress

__all__ = ["KafkaAddress"]
