"""The store in the memory of this process.

- `rows`: the rows, shared by stores of both kinds, and the rules for a claim and a write.
- `_async`, `_sync`: the `store`.
"""
