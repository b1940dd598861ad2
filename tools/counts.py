"""Numbers of rounds and the like, as options of a command."""

import argparse


def at_least_one(text: str) -> int:
    """Read the value of an option: a whole number that is not below 1.

    Raises:
        argparse.ArgumentTypeError: it is something else.
    """
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 on, not {text!r}")
    return int(text)
