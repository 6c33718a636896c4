"""Programs recorded offline: against a monitor of our own, into a graph that is plain data."""
