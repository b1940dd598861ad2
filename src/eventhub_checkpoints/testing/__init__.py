"""Tests of consumers: what the fixtures of the pytest plugin return.

`pytest_eventhub_checkpoints`, a module beside this package, has the fixtures. Nothing here needs
pytest: the classes work with other test frameworks too.

- `event_hub`: a hub of one test. `checkpoints`: what is stored for it.
"""

from eventhub_checkpoints.testing.checkpoints import Checkpoints
from eventhub_checkpoints.testing.event_hub import EventHub

__all__ = ["Checkpoints", "EventHub"]
