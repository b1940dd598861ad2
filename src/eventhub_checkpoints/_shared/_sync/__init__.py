"""Code shared by stores, processing and receive, for threads (derived)."""
