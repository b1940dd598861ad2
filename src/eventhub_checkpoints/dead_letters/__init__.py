"""Dead letters: events that could not be processed, kept outside of their hub.

`EventProcessor(on_poison=...)` accepts the sinks; `eventhub_checkpoints.aio.dead_letters` has those
for asyncio. `DeadLetterTable`, a table of a SQL database, is in `eventhub_checkpoints.sql`.

- `dead_letter`: what is kept of an event, and its formats. `log_file`: lines of a file.
- `sinks`, in `_async` (edited) and `_sync` (derived): a file, and another hub.
"""

from eventhub_checkpoints.dead_letters._sync.sinks import DeadLetterFile, DeadLetterHub
from eventhub_checkpoints.dead_letters.dead_letter import DeadLetter, StoredDeadLetter

__all__ = ["DeadLetter", "DeadLetterFile", "DeadLetterHub", "StoredDeadLetter"]

for _public in (DeadLetter, DeadLetterFile, DeadLetterHub, StoredDeadLetter):
    _public.__module__ = __name__
