"""Parsers for the output of each acceptance test: figures and failures."""
