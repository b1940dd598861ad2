"""Azure Table Storage, for threads (derived)."""

from eventhub_checkpoints._shared.drivers import require_driver

require_driver("the Table store", "table", "urllib3", "certifi")
