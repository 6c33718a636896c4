"""`gcluster ledger`: what the cluster's book says, held against what is there."""

WORDS = {"check": "List what is there and paid for, and that no book knows of."}
"""Word -> one line of help."""


def command() -> None:
    """Hold the book of what was made against what the sites have."""
