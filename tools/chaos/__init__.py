"""Workers that process while everything goes wrong, and what became of the events and positions."""
