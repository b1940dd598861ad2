"""Download the jars that Spark's tests with foreign sources need.

`python tools/spark_jars.py kafka` downloads a broker, Spark's Kafka source and `from_avro`,
`python tools/spark_jars.py jvm` the JVM connector of Event Hubs.
"""

import argparse
import sys

from maven import Artifact, JarSet, JarsMissingError

KAFKA_SPARK = "4.0.0"
"""Newest Spark version whose Kafka source resolves as published."""
CONNECTOR_SPARK = "3.5"
"""Last Spark version that can load the JVM connector, which exists for Scala 2.12 only."""

KAFKA_SOURCE = JarSet(
    name=f"spark-kafka-{KAFKA_SPARK}",
    artifacts=(
        Artifact(
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{KAFKA_SPARK}",
            without=("org.apache.spark:spark-tags_2.13",),
        ),
    ),
    fetched_by="run `python tools/spark_jars.py kafka`",
    # PySpark contains the rest.
    kept=("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2"),
)
AVRO = JarSet(
    name=f"spark-avro-{KAFKA_SPARK}",
    artifacts=(
        Artifact(
            f"org.apache.spark:spark-avro_2.13:{KAFKA_SPARK}",
            without=("org.apache.spark:spark-tags_2.13",),
        ),
    ),
    fetched_by="run `python tools/spark_jars.py kafka`",
    # PySpark contains the rest.
    kept=("spark-avro",),
)
KAFKA_BROKER = JarSet(
    name="kafka-4.3.1",
    artifacts=(
        Artifact("org.apache.kafka:kafka_2.13:4.3.1"),
        Artifact("org.slf4j:slf4j-simple:1.7.36"),
    ),
    fetched_by="run `python tools/spark_jars.py kafka`",
)
CONNECTOR = JarSet(
    name="azure-eventhubs-spark-2.3.22",
    artifacts=(
        Artifact(
            "com.microsoft.azure:azure-eventhubs-spark_2.12:2.3.22",
            without=(
                # For Microsoft Entra ID, which no test uses.
                "com.microsoft.azure:azure-client-authentication",
                "com.nimbusds:nimbus-jose-jwt",
                # Part of PySpark.
                "org.slf4j:slf4j-api",
                "org.scala-lang:scala-library",
            ),
        ),
    ),
    fetched_by="run `python tools/spark_jars.py jvm`",
)
SETS = {"kafka": (KAFKA_SOURCE, AVRO, KAFKA_BROKER), "jvm": (CONNECTOR,)}


def main() -> None:
    """Download the jars named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", choices=SETS)
    for jars in SETS[parser.parse_args().environment]:
        try:
            jars.install()
        except JarsMissingError as missing:
            sys.exit(f"{jars.name}: {missing}")
        print(f"{jars.name}: {jars.home}")


if __name__ == "__main__":
    main()
