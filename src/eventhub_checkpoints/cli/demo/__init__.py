"""`ehcp demo`: a consumer is killed, another takes over, Spark goes on, and every event is counted.

- `command`: options, requirements, exit status, signals. `story`: what happens, in order.
- `stage`: hub, consumers and Spark, and waiting for them. `storage`: where the checkpoints go.
- `consumer`, `publisher`, `spark_job`: programs, each of which also runs alone. `programs`: what
  they share: hub and store from the environment, and the journal of their work.
- `children`: processes that end with the demo.
- `report`: what is promised about a partition, compared with what was seen; and what is printed.
"""
