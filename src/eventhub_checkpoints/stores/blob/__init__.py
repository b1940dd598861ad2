"""The store on Azure Blob Storage.

- `url`: account, container and SAS. `options`: arguments of the store and of its driver.
- `blob_names`, `protocol`: names, metadata and status codes, as every official SDK has them.
- `rows`: listed blobs as records. `responses`: errors and answers of the driver.
- `_async`, `_sync`: the `store`, its `requests`, its `abilities`, and the driver's `transport`.
"""
