"""Print what mutmut found in the working directory: of each mutant its verdict and its change.

A process of its own, because mutmut reads its settings once, from the directory it is in. The
command `mutmut show` gives one change in a second.
"""

import json

from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import walk_mutatable_files

NOTICED = {"killed", "timeout"}


def main() -> None:
    """Print a JSON object: the verdict of each mutant, and its diff if it survived."""
    config()
    verdicts = {}
    for path in walk_mutatable_files():
        data = SourceFileMutationData(path=path)
        data.load()
        for name, code in data.exit_code_by_key.items():
            verdict = status_by_exit_code[code]
            diff = "" if verdict in NOTICED else get_diff_for_mutant(name, path=path)
            verdicts[name] = verdict, diff
    print(json.dumps(verdicts))


if __name__ == "__main__":
    main()
