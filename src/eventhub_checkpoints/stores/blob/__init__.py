"""The store on Azure Blob Storage.

- `options`: arguments of the constructor.
- `protocol`: names, metadata and status codes of blobs, as every official SDK has them; records,
  verdicts and errors in the responses.
- `rest`: the requests that the store builds itself, and the parser of lists.
- `_async`, `_sync`: the `store`; its `requests`, over one of two transports: `rest` sends them over
  the connections of `stores.azure_storage`, `driver` by calls of azure-storage-blob, with the
  connections of `driver_pool`.
"""
