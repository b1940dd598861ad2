"""Positions of partitions: from a store, in the syntax of three Spark sources, compared with a hub.

- `from_store`: from checkpoints. `hub_positions`: one position for each partition.
- `texts`: the JSON of the JVM connector and of Spark's Kafka source.
- `ranges`: exact ranges of a hub, and those of a DataFrame's rows.
- `hubs`, `gaps`: what a hub holds, and what would not be read.
"""
