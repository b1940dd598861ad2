"""The store on Azure Table Storage.

- `options`: arguments of the constructor.
- `protocol`: keys and properties of entities, as the official JavaScript store has them; records,
  verdicts and errors in the responses.
- `rest`: the requests, and the reading of entities. `transactions`: several writes as one request.
- `history`: entries of earlier checkpoints.
- `_async`, `_sync`: the `store`; its `history`; its `requests`, over the connections of
  `stores.azure_storage`.
"""
