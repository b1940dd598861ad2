"""Sending over AMQP with the official client.

- `private_parts`: all that is used of the client's private parts. `fast`: encoded batches over the
  client's connection. `public`: the client's own batches.
- `outlet`: what both offer. `sender`: the rows of a hub, on the fast path while that is possible.
"""
