"""AMQP 1.0 as pure bytes in and out: no socket, no clock, standard library only.

`types` (and `decimals`) says a value's exact type; `encode`, and `decode` with its `constructors`,
turn values into bytes and back. `composites` makes classes of described lists, and `performatives`,
`endpoints` and `sasl` are those classes. `frames` cuts a stream of bytes into frames; `messages`
reads and writes what deliveries carry.
"""
