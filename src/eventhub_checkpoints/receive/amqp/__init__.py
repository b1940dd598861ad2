"""Receiving over AMQP, by the official client.

- `address`: a hub, the choice between the two paths, and the client's errors as ours.
- `queries`: the properties of a hub and its partitions; `management`: the kept link of queries.
- `events`: the public path. `fast`: the fast path, where `decoder` turns frames into columns.
- `outage`: what is worth waiting for, for how long, and what the log says of it.
"""
