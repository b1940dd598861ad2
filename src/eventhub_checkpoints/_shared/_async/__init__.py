"""Code shared by stores, processing and receive, for asyncio (edited)."""
