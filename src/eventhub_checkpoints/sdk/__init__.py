"""All that this package uses of azure-eventhub that is not public; nothing here is public either.

Only modules of this folder read or change private attributes of the official client's objects, and
look at its frames on the stack. `tests/sdk/test_room.py` finds any other use.

- `private_names`: the table of what is used, why, and by what.
- `versions`: the releases of the client that the tests ran with, and what is said of others.
- `fallback`: errors that end a fast path, and what the log says then. `stall`: when a link that
  delivers nothing counts as stalled.
- `consumer`: what is read of a client that receives, of its loop, its receivers and its contexts.
  `stack`: the client's loops and handlers, found on the stack.
- `connection`: a connection of the client whose frames this package handles. `receiver`, `sender`,
  `management`: the three kinds of it.

Whatever uses a private name raises `FastPathError` if the client has changed, and whatever uses a
connection `OSError` if it is broken; the docstrings name only other errors.
"""
