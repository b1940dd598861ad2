"""Load balancing of up to 1,000 consumers on a simulated clock, with the SDK's and our own code.

- `backends`: simulated servers, and the store over them. `group`: the hub, the consumers, and what
  is observed. `late`: a process whose rounds begin late. `scenarios`: what happens to a group, and
  the result. `plan`: which sizes are run.
- `tables`, `figures`, `plots`: the report; `eventhub_checkpoints.operations.cost` has the prices.
- `real`, `real_consumer`: the same on real processes.
"""
