"""Positions that older programs have saved.

- `iothub_react`: names and records of iothub-react. `leases`: names and contents of the lease blobs
  of the Event Processor Hosts. `blob` and `cassandra`: reading them.
"""
