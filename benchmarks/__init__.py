"""What an operation costs: ours, the official package's, and the bare request's, side by side.

`python -m benchmarks` measures Blob on Azurite, `python -m benchmarks.backends` every backend on
its own server, `benchmarks.processing` what saving as events are processed costs,
`benchmarks.receive` and `benchmarks.spark` what is received and read by Spark; `README.md` beside
this file tells how to read the figures.

- `rounds`: a round of load balancing on Table, beside Blob.
- `measuring`: what is measured of a piece of work, and the sides taking turns at it.
- `rows`: what the SDK hands to a store.
- `operations`, `batches`, `imports`: the cases, on whatever sides; `memory`: a consumer of many
  partitions, by `memory_once` in a process of its own.
- `places`, `sides`: Azurite and the slow way to it, and the three sides on Blob.
- `servers`, `bare_sql`, `bare_redis`, `bare_cassandra`, `bare_table`: all backends, and the bare
  calls on each.
- `relays`: one counts round trips, the other makes them long.
- `processing`, `processing_*`: what tells how far events are processed, and whole consumers;
  `_async`, `_sync`: the consumers.
- `receive`, `receive_hub`, `receive_once`: a hub into Arrow, in several ways; `receive_producers`:
  how others spell events. `decoder_speed`: the decoder alone.
- `send`, `send_hub`, `send_once`: Arrow batches into a hub, in several ways.
- `spark`, `spark_*`: a hub into Spark, and which core does what.
- `scale`: consumer groups of up to 1,000 consumers on a simulated clock.
- `__main__`, `backends`: names and targets, one table for each command.
- `command`, `results`, `report`: what was asked for, what came of it, the table and the JSON file.
"""
