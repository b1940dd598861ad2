"""The checks, by the first guarantee of each; importing this registers them.

- `ownership`: G1, G2. `races`: G1 and G3 between threads and processes. `checkpoints`: G3.
- `records`: G7, G9. `foreign_rows`: G5. `lifecycle`: G8, G11. `bounds`: G6, G10. G4 has no check.
"""

# The order of these imports is the contract's.
from eventhub_checkpoints.conformance.checks import (  # noqa: F401, I001 - see above
    ownership,
    races,
    checkpoints,
    records,
    foreign_rows,
    lifecycle,
    bounds,
)
from eventhub_checkpoints.conformance.contract import CHECKS

__all__ = ["CHECKS"]
