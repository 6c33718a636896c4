"""Nodes that exist only in a file: thousands of them, latency and faults, for tests and trials."""
