"""The store on Azure Blob Storage.

- `options`: URLs, connection strings and other arguments of the constructor.
- `protocol`: names, metadata and status codes of blobs, as every official SDK has them; records,
  etags and errors in the driver's answers.
- `_async`, `_sync`: the `store` with its requests, and the driver's `transport`.
"""
