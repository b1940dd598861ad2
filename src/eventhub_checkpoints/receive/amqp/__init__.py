"""Receiving over AMQP, by the official client.

- `address`: a hub.
- `paths`: the fast path or the public path of a stream, and errors of the client as ours.
- `events`: the public path. `fast`: the fast path; `opening` opens its link, and `decoder` turns
  frames into columns.
- `known_client`, `private_parts`: what is used of the official client that is not public.
"""
