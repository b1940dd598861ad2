"""AMQP 1.0 as pure bytes in and out: no socket, no clock, standard library only.

- `types`: exact types of values, decimals among them. `encode`, `decode`, `constructors`: values to
  bytes and back.
- `composites`: classes of described lists. `performatives`: those classes, SASL's and those of
  links.
- `frames`: a stream of bytes as frames. `messages`: what deliveries carry.
"""
