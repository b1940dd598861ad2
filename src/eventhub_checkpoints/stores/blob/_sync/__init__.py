"""Azure Blob Storage, for threads (derived)."""
