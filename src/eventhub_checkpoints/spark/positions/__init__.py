"""Places in partitions: from a store, as other sources spell them, and held against a hub."""
