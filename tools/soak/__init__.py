"""Whether consumers stay the same for a long time: memory, threads, sockets and open files.

- `real`: real processes against a real store, for as long as you want. `consumer`: such a process.
  `ledger`: which events are lost, or processed twice.
- `simulated`: a day of a consumer on a simulated clock, in seconds.
- `trend`: what is measured of a process, and whether it grows.
"""
