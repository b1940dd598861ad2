"""Receiving over AMQP: the hub, by the official client."""
