"""Consumers to Spark's Kafka source: print the options that start it at the checkpoints.

    EVENTHUB_CONNECTION_STRING   of the hub, with EntityPath
    CHECKPOINT_STORE             URL of the store: https://ACCOUNT.blob.core.windows.net/CONTAINER,
                                 or sqlite:///checkpoints.db

It does not need Spark, and prints the options as JSON without the secret. In a job, pass all of
`kafka_options` to `spark.readStream.format("kafka").options(**...)`. Spark needs the package
`spark-sql-kafka-0-10` of the same version, and the namespace must be of the Standard tier or above.
"""

import json
import os

from eventhub_checkpoints.receive import HubAddress
from eventhub_checkpoints.spark import starting_positions

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECRET = "kafka.sasl.jaas.config"


def kafka_options(hub: HubAddress, store_url: str) -> dict[str, str]:
    """Return options of Spark's Kafka source: the hub's address and the starting offsets."""
    # `hub` lists all partitions, and finds the sequence number of a checkpoint without one.
    positions = starting_positions(store_url, hub.scope(), hub=hub, missing="earliest")
    login = f'username="$ConnectionString" password="{hub.connection_string}"'
    return {
        "kafka.bootstrap.servers": f"{hub.fully_qualified_namespace}:9093",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        SECRET: f"{LOGIN} required {login};",
        "kafka.request.timeout.ms": "60000",
        "kafka.session.timeout.ms": "60000",
        "subscribe": hub.eventhub_name,
        "startingOffsets": positions.to_kafka(hub=hub),
    }


def main() -> None:
    hub = HubAddress.from_connection_string(os.environ["EVENTHUB_CONNECTION_STRING"], "$Default")
    options = kafka_options(hub, os.environ["CHECKPOINT_STORE"])
    print(json.dumps(options | {SECRET: "..."}, indent=2))


if __name__ == "__main__":
    main()
