"""What a query has committed, as sources and the checkpoint folder tell it."""
