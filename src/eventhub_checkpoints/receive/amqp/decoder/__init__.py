"""Events out of the bytes of a receiving link: frames in, columns out.

Imports `amqp` alone: no transport, no Arrow. `deliveries` takes the frames, `transfers` puts
parts together, `events` reads a payload the generic way, `values` makes text of AMQP values,
`columns` is what comes out. The fast way beside the generic one: `shapes` finds what frames have in
common, out of `pieces` and `slots`; `patterns` makes a regex of it; `learning` finds the layout of
a frame by its `signs`; `layouts` and `pending` hold what was matched, and `gathering` makes columns
of it. Between the two, `tails` reads what follows a head that is known.

The columns are those that the azure-eventhub client's messages give, see `receive.amqp`. Where
its decoder (5.15.1, `_pyamqp/_decode.py`) fails or is wrong, this one reads what was sent:

- it raises on char, decimal32 and decimal64, and misreads most values of decimal128;
- it takes a section's descriptor for one byte, so one of eight bytes or a symbol is misread;
- it cannot read arrays of described values;
- it takes an aborted delivery for an event, and what was received of it for its payload;
- it takes a batch (format 0x80013700) for one event whose body is all of its messages;
- it reads on behind the end of a value whose size is wrong, where this one raises `CodecError`
  (but for the size of a list or map in a learned layout, where all items are read anyhow).

An event without a sequence number is a `CodecError` too: it has no place in a partition. So is an
enqueued time that is no number, and one 285,000 years from 1970.
"""

from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder.columns import Columns, TextMaps
from eventhub_checkpoints.receive.amqp.decoder.deliveries import MAX_DELIVERY_SIZE, Deliveries

__all__ = ["MAX_DELIVERY_SIZE", "CodecError", "Columns", "Deliveries", "TextMaps"]
