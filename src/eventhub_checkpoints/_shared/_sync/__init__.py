"""What stores, processing and receive have in common, for threads (derived)."""
