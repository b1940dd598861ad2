"""What a streaming query has committed.

- `parsing`, `offsets`, `stream_offset`: its progress, for each source.
- `query_checkpoint`, `query_log`, `checkpoint_files`: its checkpoint folder.
"""
