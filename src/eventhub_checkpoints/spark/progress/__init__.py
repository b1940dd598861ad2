"""What a streaming query has committed.

- `parsing`: from its progress, for each source. `query_checkpoint`: from its checkpoint folder.
"""
