"""`read_batches`: a hub as Arrow batches, for threads (derived)."""
