"""`ehcp demo`: a consumer is killed, another takes over, Spark goes on, and every event is counted.

- `command`: options, requirements, exit status. `signals`: Ctrl-C and SIGTERM.
- `story`: what happens, in order. `stage`: what takes part, and waiting for it.
- `servers`, `storage` (and `storage_azurite`), `publisher`, `spark_step`: the parts. `place`: their
  environment.
- `consumer` (with `consumer_sync` and `consumer_aio`) and `spark_job`: programs of their own.
- `journal`: what each program has done, in a file that survives its death.
- `verdict`: what is promised about a partition, compared with what was seen. `screen`: what is
  printed.
"""
