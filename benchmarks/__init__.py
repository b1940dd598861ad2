"""What an operation costs: ours, the official package's, and the bare request's, side by side.

`python -m benchmarks` measures all of it on Azurite; `README.md` beside this file tells how to read
the figures.

- `measuring`: what is measured of a piece of work, and the sides taking turns at it.
- `places`: Azurite, and the slow way to it.
- `sides`: the same operations by each side, sync and aio.
- `operations`, `batches`, `imports`: the cases.
- `cases`: their names and targets.
- `report`: the table and the JSON file.
"""
