"""Workers that are killed while they process, and what became of the events and positions."""
