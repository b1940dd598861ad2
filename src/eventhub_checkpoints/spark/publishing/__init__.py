"""The committed progress of a query, on its way into a checkpoint store."""
