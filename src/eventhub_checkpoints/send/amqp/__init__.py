"""Sending over AMQP with the official client.

- `fast`: encoded batches over the client's connection; `transfers`: their frames, and the hub's
  answers. `public`: the client's own batches.
- `outlet`: what both offer. `sender`: the rows of a hub, on the fast path while that is possible.
"""
