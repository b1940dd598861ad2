# Not derived: edit this file and its async twin together.
"""SIGTERM and Ctrl-C as a request to stop a program."""

from eventhub_checkpoints._shared.signals import on_stop_signals

__all__ = ["on_stop_signals"]
