"""Sending: rows of Arrow batches as events, in batches as large as the hub accepts.

`send_batches(address, batches)` lives in `eventhub_checkpoints.send.arrow`, which needs the extra
`arrow` (pyarrow).

- `settings`: how to send.
- `events`: rows as columns, and encoded. `filling`: batches of encoded events.
- `arrow`: columns of Arrow batches. `sender`: what a transport offers; `amqp` and
  `kafka` are the transports.
"""

from eventhub_checkpoints.send.settings import SendSettings

__all__ = ["SendSettings"]
