"""Receiving over Kafka: a hub by its Kafka endpoint, or a topic of any Kafka cluster.

- `address`: a hub or topic. `client`: a consumer of librdkafka, and its settings.
- `asking`: partitions and offsets of a topic. `stream`, `messages`: records as columns.
- `troubles`: librdkafka's errors.
"""

from eventhub_checkpoints.errors import MissingDriverError

try:
    import confluent_kafka  # noqa: F401  (said once, before any module here needs it)
except ImportError as error:
    raise MissingDriverError.of_extra("transport=kafka", "kafka") from error

from eventhub_checkpoints.receive.kafka.address import KafkaAddress

__all__ = ["KafkaAddress"]
