"""The store on Azure Blob Storage.

- `url`: account, container and SAS. `options`: arguments of the store and of its driver.
- `protocol`: names, metadata and status codes of blobs, as every official SDK has them.
- `responses`: listed blobs as records, errors and etags.
- `_async`, `_sync`: the `store`, its `requests`, and the driver's `transport`.
"""
