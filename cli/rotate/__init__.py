"""`gcluster rotate`: keys of a running cluster, made anew."""

WORDS = {
    "munge": "Give every machine another MUNGE key; running jobs go on.",
    "tunnels": "Give the gateways between sites other keys; connections live on.",
}
"""Word -> one line of help."""


def command() -> None:
    """Make keys of a running cluster anew."""
