"""The checks, in the order of the contract; importing this registers them.

- `claims`, `races`, `processes`: ownership. `checkpoints`, `forward`: checkpoints.
- `records`, `isolation`, `ownership_dialects`, `checkpoint_dialects`: what is stored.
- `lifecycle`, `bounds`: stores and their time limits.
- `claim_faults`, `checkpoint_faults`, `release_faults`, `reality`: a backend that fails.
"""

# The order of these imports is the contract's.
from eventhub_checkpoints.conformance.checks import (  # noqa: F401, I001 - see above
    claims,
    races,
    processes,
    checkpoints,
    forward,
    records,
    isolation,
    lifecycle,
    claim_faults,
    release_faults,
    checkpoint_faults,
    bounds,
    ownership_dialects,
    checkpoint_dialects,
    reality,
)
from eventhub_checkpoints.conformance.contract import CHECKS

__all__ = ["CHECKS"]
