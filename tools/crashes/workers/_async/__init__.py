"""Workers with the asynchronous client (edited)."""
