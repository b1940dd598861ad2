"""What is decided: pure functions and plain state.

Rule 1: time is a parameter. Rule 2: no lock, no I/O, no driver. Rule 3: the standard library,
`records` and `errors` are all that is imported.
"""
