"""`ehcp demo`: a consumer is killed, another takes over, Spark goes on, and every event is counted.

- `command`: options, exit status, signals. `requirements`: what must be installed.
- `plan`: what was asked for. `story`: what happens, in order. `stage`: what takes part, and waiting
  for it.
- `servers`, `storage` (of three kinds), `publisher`, `spark_step`: the parts. `consumer` (in two
  colours) and `spark_job`: programs of their own.
- `journal`: what each program says that it has done, on a file that survives its death.
- `verdict`: what is promised about one partition, as a pure function. `screen`: what is shown.

- `consumer_sync`, `consumer_aio`, `storage_azurite`, `storage_given`: the kinds of the above.
  `place`: the environment of the programs. `ending`, `signals`: how it ends.
"""
