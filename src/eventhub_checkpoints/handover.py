"""Checkpoint store with which consumers hand partitions over instead of taking them."""

from eventhub_checkpoints.processing._sync.handover import HandoverStore

__all__ = ["HandoverStore"]

HandoverStore.__module__ = __name__
