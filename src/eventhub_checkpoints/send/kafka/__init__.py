"""Sending over Kafka, to a hub's endpoint or a cluster, with the extra `kafka` (confluent-kafka).

- `sender`: the rows of a topic.
"""

from eventhub_checkpoints.errors import MissingDriverError

try:
    import confluent_kafka  # noqa: F401  (checked once, before any module here needs it)
except ImportError as error:
    raise MissingDriverError.of_extra("Kafka as a transport", "kafka") from error
