"""Dead letters: events that could not be processed, kept outside of their hub."""

from eventhub_checkpoints.dead_letters import DeadLetter, StoredDeadLetter
from eventhub_checkpoints.dead_letters._async.sinks import DeadLetterFile, DeadLetterHub

__all__ = ["DeadLetter", "DeadLetterFile", "DeadLetterHub", "StoredDeadLetter"]

for _public in (DeadLetterFile, DeadLetterHub):
    _public.__module__ = __name__
