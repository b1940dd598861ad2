"""Workers that process while everything goes wrong, what they write down, and the rules about it.

- `orders`, `diary`, `_async`, `_sync`: how a worker processes, and what it records.
- `journal`: the file. `judge`, `claimed`: the rules.
- `nursery`, `process`: processes of workers. `publishing`: of the events. `rounds`: all of these.
"""
