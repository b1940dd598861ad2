"""The store in the memory of this process.

- `rows`: the rows, shared by stores of both kinds. `rules`: when a claim or a write wins.
- `_async`, `_sync`: the `store`.
"""
