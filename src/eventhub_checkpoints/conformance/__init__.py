"""The checks that certify a checkpoint store, of either colour and on any backend.

- `CheckpointStoreConformance`: the checks as a pytest class to inherit.
- `certify`: the checks as a function that gives a `Report`.
- `python -m eventhub_checkpoints.conformance URL`: the checks as a command.

Each check is a function whose docstring is a sentence of the contract. There are three levels:
what any store shows from outside; faults between our base class and the hooks of a store on it;
and what only the store's author can cause, with `Accessors`. What could not be shown is reported. A
store is certified if no check failed and processes could race it, or within one process if it
declares `for_one_process`.

- `contract`: the list of `checks`, and what a store's author may give for more of them. `certify`,
  `suite`: running them. `report`: the result.
- `harness`, `clients`: what a check is passed. `faults`: failing hooks. `processes`: processes that
  race.
"""

from eventhub_checkpoints.conformance.certify import Certifier, certify
from eventhub_checkpoints.conformance.checks import CHECKS
from eventhub_checkpoints.conformance.contract import Accessors, Check, NotShown
from eventhub_checkpoints.conformance.report import Certificate, Outcome, Report, Verdict
from eventhub_checkpoints.conformance.suite import CheckpointStoreConformance

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
