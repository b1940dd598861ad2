"""AMQP 1.0 as pure bytes in and out: no socket, no clock, standard library only.

- `types`: AMQP types without a Python equivalent, decimals among them. `encode`, `decode`: values
  to bytes and back.
- `performatives`: described lists as classes, and the frames that carry them. `messages`: what
  deliveries carry.
"""
