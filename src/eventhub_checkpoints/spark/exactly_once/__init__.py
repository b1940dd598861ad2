"""Results and positions in one transaction of a database."""
