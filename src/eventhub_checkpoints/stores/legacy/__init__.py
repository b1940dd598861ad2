"""Positions that iothub-react has saved.

- `iothub_react`: its names and records. `blob` and `cassandra`: reading them.
"""
