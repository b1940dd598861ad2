"""Checks that certify a checkpoint store: sync or async, on any backend.

- `CheckpointStoreConformance`: the checks as a pytest class to inherit.
- `certify`: the checks as a function that returns a `Report`.
- `python -m eventhub_checkpoints.conformance URL`: the checks as a command.

Each check is a function whose docstring is a sentence of the contract. There are three levels:
behaviour that every store shows from outside; faults between this package's base class and the
hooks of a store; and situations that only the store's author can create, with `Accessors`. The
report names the checks that could not be run, and never counts them as passed. A store is certified
if no check failed and processes could race it, or within one process if it declares
`for_one_process`.

- `contract`: a check, and the accessors with which a store's author enables more checks. `checks`:
  all of them. `certify`: runs them. `report`: the result.
- `harness`, `clients`: the arguments of a check. `faults`: failing hooks. `processes`: processes
  that race. `pauses`: hooks that pause at any of their lines.
"""

from eventhub_checkpoints.conformance.certify import (
    Certifier,
    CheckpointStoreConformance,
    certify,
)
from eventhub_checkpoints.conformance.checks import CHECKS
from eventhub_checkpoints.conformance.contract import Accessors, Check, NotShown
from eventhub_checkpoints.conformance.report import Certificate, Outcome, Report, Verdict

__all__ = [
    "CHECKS",
    "Accessors",
    "Certificate",
    "Certifier",
    "Check",
    "CheckpointStoreConformance",
    "NotShown",
    "Outcome",
    "Report",
    "Verdict",
    "certify",
]
