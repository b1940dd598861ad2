"""What services of an Azure Storage account have in common; no driver of a service is needed.

- `account`: URLs and connection strings of an account's services, and the emulator.
- `authorization`: account keys, shared access signatures and tokens, from any credential.
- `messages`: a request, its response, and the log that azure-core keeps of them.
- `connection_options`: certificates and proxies, from the arguments of a driver's client.
- `name_case`: whether the names of a group are stored as they are typed.
- `errors`: errors of this package from those of azure-core, and from refusals.
- `_async`, `_sync`: `http`, the connections; `authorized`, which sends requests over them with a
  credential; `parallel`, which sends several at the same time; `store`, the base class of stores.
"""
