"""Workers that process on any store while everything goes wrong.

- `plan`, `storage`: what goes wrong. `rounds`: one round. `stream`, `stream_driver`: the Spark
  stream beside the workers of some. `scenario`: the command and its tables.
"""
