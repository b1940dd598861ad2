"""What stores, processing and receive have in common, for asyncio (edited)."""
