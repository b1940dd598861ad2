"""Programs that are killed and stalled while they work, and what became of events and positions.

- `__main__`: the command. `harness`: rounds with seeds, their lines, problems and report.
- Five scenarios. `processing`: workers, on any store. `moves`: workers while their group moves to
  another store. `stalls`: consumers and their watchdogs. `spark`: drivers of queries. `sink`: a
  pipeline from hub to hub. Each has its plan, its rounds and its judge.
- `workers`: the workers of `processing` and `moves`, their journal, and the rules about it.
- `drivers`: processes that run Spark.
"""
