"""One target under atheris, which takes its process over: `python -m fuzzing.child TARGET ...`.

Arguments: the target, and those of libFuzzer. Prints each fault once, as a line of JSON.
"""

import base64
import json
import logging
import sys
import warnings
from random import Random
from typing import Any

import atheris

with atheris.instrument_imports(include=["eventhub_checkpoints"]):
    from fuzzing.targets import TARGETS

from fuzzing.mutations import mutated
from fuzzing.target import place_of

OWN_MUTATIONS = 0.3
"""Share of the inputs that are changed as in `mutations`; libFuzzer changes the others."""


def main() -> None:
    """Fuzz until libFuzzer ends the process."""
    target = TARGETS[sys.argv[1]]
    seen: set[str] = set()

    def test(data: bytes) -> None:
        try:
            target.run(data)
        except Exception as error:
            place = place_of(error)
            if place not in seen:
                seen.add(place)
                shown = {"place": place, "error": f"{error!r:.300}"}
                shown["input"] = base64.b64encode(data).decode()
                print(json.dumps(shown), flush=True)

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        chance = Random(seed)
        if chance.random() < OWN_MUTATIONS:
            return mutated(data or chance.choice(target.corpus), chance, longest)
        changed: Any = atheris.Mutate(data, longest)
        return bytes(changed)

    atheris.Setup([sys.argv[0], *sys.argv[2:]], test, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    main()
