"""Receiving over Kafka: a hub by its Kafka endpoint, or a topic of any Kafka cluster.

`address` is what others use. `settings` says what librdkafka is told, `troubles` what its errors
mean, `asking` asks about topics with a `client`, `stream` receives, and `messages` with `headers`
makes columns.
"""

from eventhub_checkpoints.errors import MissingDriverError

try:
    import confluent_kafka  # noqa: F401  (said once, before any module here needs it)
except ImportError as error:
    raise MissingDriverError.of_extra("transport=kafka", "kafka") from error

from eventhub_checkpoints.receive.kafka.address import KafkaAddress

__all__ = ["KafkaAddress"]
