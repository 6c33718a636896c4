"""`gcluster burst`: jobs that spill to rented nodes. Each word is a module beside this."""

WORDS = {
    "simulate": "Replay a job trace against a spec's spill policy.",
    "agent": "Make the nodes that jobs need, give idle ones back, and move jobs that spill.",
    "explain": "Say why a waiting job spills or stays, on a cluster that is up.",
    "dry-run": "Say which jobs of a saved queue would spill now, and why.",
}
"""Words and their one line of help; equal to the first line of their docstrings."""


def command() -> None:
    """Run jobs on rented nodes, and try out when and where they spill."""
