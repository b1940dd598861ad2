"""The store on Azure Blob Storage.

- `options`: URLs, connection strings and other arguments of the constructor.
- `protocol`: names, metadata and status codes of blobs, as every official SDK has them; records,
  etags and errors in the responses.
- `rest`: the requests that the store builds itself: their signatures, and the parser of lists.
- `_async`, `_sync`: the `store`; its requests without the driver, in `rest` and `http`; those
  through azure-storage-blob, in `driver` and `driver_transport`.
"""
