"""Receiving over AMQP, by the official client.

- `address`: a hub. `questions`, `refusals`: its properties, and its errors as ours.
- `paths`: fast path or public path, and falling back. `events`, `event_columns`: the public path.
- `fast`: the fast path; `opening`, `credit`, `frames`, `retries` are its parts, and `decoder` turns
  frames into columns.
- `client`, `known_client`, `private_parts`: what is used of the official client that is not public.
"""
