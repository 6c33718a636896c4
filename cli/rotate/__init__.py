"""`gcluster rotate`: keys of a running cluster, made anew."""

WORDS = {
    "munge": "Give every machine another MUNGE key; running jobs go on.",
}
"""Word -> one line of help."""


def command() -> None:
    """Make keys of a running cluster anew."""
