"""The checks that certify a checkpoint store, of either colour and on any backend.

- `CheckpointStoreConformance`: the checks as a pytest class to inherit.
- `certify`: the checks as a function that gives a `Report`.
- `python -m eventhub_checkpoints.conformance URL`: the checks as a command.

Each check is a function whose docstring is a sentence of the contract. There are three levels:
what any store shows from outside; faults between our base class and the hooks of a store on it;
and what only the store's author can cause, with `Accessors`. What could not be shown is reported. A
store is certified if no check failed and processes could race it, or within one process if it
declares `for_one_process`.

- `contract`: a check, and the accessors by which a store's author enables more of them. `checks`:
  all of them. `certify`: running them. `report`: the result.
- `harness`, `clients`: what a check is passed. `faults`: failing hooks. `processes`: processes that
  race.
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
