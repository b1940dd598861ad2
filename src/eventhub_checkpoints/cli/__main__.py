"""Entry point of `python -m eventhub_checkpoints.cli`."""

from eventhub_checkpoints.cli import main

if __name__ == "__main__":
    main()
