"""What is said to each backend, as data: no driver is imported here."""
