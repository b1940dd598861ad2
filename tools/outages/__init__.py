"""Tries what each caller does while a hub or a store is away, or refuses.

`place` is a hub behind a gate that fails; `hub_callers` are prepared and call it. `trial` makes one
trial, also of a store, and returns its `result`. `__main__` tries all cells, and compares them with
what is documented.
"""
