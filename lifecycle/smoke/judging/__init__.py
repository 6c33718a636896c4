"""Evaluates a parsed log: one concept per file, each check yields reasons against a pass."""
