"""Reads the log of an AllReduce, line by line: what it says, as values, and nothing judged."""
