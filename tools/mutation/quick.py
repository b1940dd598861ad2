"""Plugin of pytest for the run of a mutant: a process that ends soon collects no garbage.

Half of the time of a mutant would be spent on it, because the process is a copy of one that has
loaded everything.
"""

import gc


def collect(generation: int = 2) -> int:
    """Replace `gc.collect`."""
    return 0


gc.disable()
gc.collect = collect
