"""Events out of the bytes of a receiving link: frames in, columns out. Three ideas make it fast.

1. **Events of one producer share a frame template**: all bytes are the same but those of a few
   values. A template is learned from a frame that recurs.
2. **The template becomes a regular expression**, which cuts a frame into its values with one match.
   The values of all rows of a batch are converted to columns at once.
3. **Sizes are verified** after the match, because a regular expression cannot count. Where a size
   is wrong, and for frames of no known template, the generic path decodes the event value by value.

- `deliveries`: transfers become rows; other frames are passed on.
- `learning`: which templates are known. A frame's *bucket key* selects those that it may fit; a
  *sampling back-off* limits how many frames are analysed in vain.
- `templates`: a frame as literals and slots. `patterns`: the regular expression of a template.
- `rows`: what was matched, its verification, and its conversion to columns.
- `events`: the generic path, and the part of a frame that follows a known head.

It imports `amqp` and the declaration of the columns alone: no transport, no Arrow. The columns are
those that the azure-eventhub client's messages give, see `receive.amqp`. Where the client's decoder
(5.15.1, `_pyamqp/_decode.py`) fails or is wrong, this one reads what was sent:

- it raises on char, decimal32 and decimal64, and misreads most values of decimal128;
- it takes a section's descriptor for one byte, so one of eight bytes or a symbol is misread;
- it cannot read arrays of described values;
- it takes an aborted delivery for an event, and what was received of it for its payload;
- it takes a batch (format 0x80013700) for one event whose body is all of its messages;
- it reads on beyond the end of a value whose size is wrong, where this one raises `CodecError`
  (except for the size of a list or map in a template, where all items are read anyway).

An event without a sequence number is a `CodecError` too: it has no position in a partition. So is
an enqueued time that is not a number, and one 285,000 years from 1970.
"""

from eventhub_checkpoints.amqp.types import CodecError
from eventhub_checkpoints.receive.amqp.decoder.deliveries import MAX_DELIVERY_SIZE, Deliveries

__all__ = ["MAX_DELIVERY_SIZE", "CodecError", "Deliveries"]
