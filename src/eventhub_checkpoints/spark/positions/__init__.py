"""Positions of partitions: from a store, in the syntax of three Spark sources, compared with a hub.

- `from_store`, `stored`: from checkpoints. `hub_positions`: one position for each partition.
- `texts`, `kafka_texts`: the JSON of the JVM connector and of Spark's Kafka source.
- `ranges`, `frame_ranges`: exact ranges of a hub, and those of a DataFrame's rows.
- `hubs`, `resolving`, `gaps`: what a hub holds, positions as sequence numbers, what would not be
  read.
"""
