"""Fuzzing of everything that parses bytes or text of others: `python -m fuzzing --help`.

- `target`: what a target is: a function of bytes, the errors that it may raise, its corpus.
- `mutations`: how an input is changed; atheris and Hypothesis share it.
- `of_stores`, `of_amqp`, `of_spark`, `of_files`, `of_settings`: the targets.
- `targets`: all of them, by name.
- `child`: one target under atheris, in a process of its own.
"""
