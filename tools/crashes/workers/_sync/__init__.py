"""Workers with the synchronous client (the store is derived)."""
