"""`gcluster burst`: jobs that spill to rented nodes. Each word is a module beside this."""

WORDS = {
    "simulate": "Replay a job trace against a spec's spill policy.",
    "dry-run": "Say which jobs of a saved queue would spill now, and why.",
}
"""Words and their one line of help; equal to the first line of their docstrings."""


def command() -> None:
    """Try out when and where jobs spill to rented nodes."""
