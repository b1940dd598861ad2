"""Options of the JVM connector and of Spark's Kafka source and sink that are refused, and why.

`docs/how-to/spark-connector.md` has the same sentences; a test compares them.
"""

from collections.abc import Mapping

JVM_CLASS = "a Python source cannot load a class of the JVM"
PROGRESS = "a StreamingQueryListener receives the rows and the durations of each batch"
ONE_HUB = "a source reads one hub, named by connectionString or eventHubName; union several"
FIXED = "Kafka's client of this package relies on its own value"
BINARY = "bodies and keys stay as they are in the event; convert them by DataFrame operations"

OF_CONNECTOR: Mapping[str, str] = {
    "threadPoolSize": "a task has no pool of threads; partitionsPerTask and minPartitions set how "
    "many tasks read",
    "maxSilentTime": "a receiver without an event for receiverTimeout is always replaced",
    "dynamicPartitionDiscovery": "new partitions are always found, before each batch, and read "
    "from their first event",
    "slowPartitionAdjustment": "tasks of a Python source cannot report their durations to the "
    "driver; limit a slow partition with maxRatesPerPartition",
    "maxAcceptableBatchReceiveTime": "it belongs to slowPartitionAdjustment; limit a slow "
    "partition with maxRatesPerPartition",
    "throttlingStatusPlugin": f"{JVM_CLASS}; {PROGRESS}",
    "metricPlugin": f"{JVM_CLASS}; {PROGRESS}",
}
OF_KAFKA: Mapping[str, str] = {
    "assign": "all partitions of the hub are read; for ranges of some, use HubRanges",
    "subscribe": ONE_HUB,
    "subscribePattern": ONE_HUB,
    "startingTimestamp": "use startingPosition with a time, such as 2026-11-25T10:00:00Z",
    "startingOffsetsByTimestamp": "use startingPositions, with an enqueuedTime for each partition",
    "startingOffsets": "use startingPosition (earliest, latest) or startingPositions (a seqNo for "
    "each partition)",
    "startingOffsetsByTimestampStrategy": "a start at a time after the last event always waits "
    "for the next one",
    "endingTimestamp": "use endingPosition with a time, such as 2026-11-25T10:00:00Z",
    "endingOffsetsByTimestamp": "use endingPositions, with an enqueuedTime for each partition",
    "endingOffsets": "use endingPosition (latest) or endingPositions (a seqNo for each partition)",
    "kafkaConsumer.pollTimeoutMs": "use receiverTimeout, in seconds",
    "fetchOffset.numRetries": "queries are repeated within operationTimeout, in seconds",
    "fetchOffset.retryIntervalMs": "queries are repeated within operationTimeout, in seconds",
    "maxOffsetsPerTrigger": "use maxEventsPerTrigger",
    "minOffsetsPerTrigger": "use minEventsPerTrigger",
    "maxRecordsPerPartition": "use minPartitions, which divides large ranges among more tasks",
    "groupIdPrefix": "no consumer group is created; consumerGroup names an existing one",
    "kafka.group.id": "use consumerGroup, over Kafka too",
    "includeHeaders": "the column properties always has them",
    "kafka.auto.offset.reset": "use startingPosition",
    "kafka.enable.auto.commit": FIXED,
    "kafka.key.deserializer": BINARY,
    "kafka.value.deserializer": BINARY,
    "kafka.key.serializer": BINARY,
    "kafka.value.serializer": BINARY,
    "kafka.interceptor.classes": JVM_CLASS,
    "topic": "use eventHubName; a sink sends to one hub",
}
REFUSED: Mapping[str, str] = {**OF_CONNECTOR, **OF_KAFKA}
"""Why an option is refused, and what replaces it, by its name."""
