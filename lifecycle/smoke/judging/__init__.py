"""Judges what a log says: each concept a file, each check yields what speaks against a pass."""
