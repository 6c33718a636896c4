"""Parses the log of an AllReduce line by line into values, without evaluation."""
