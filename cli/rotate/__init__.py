"""`gcluster rotate`: keys of a running cluster, made anew."""

WORDS = {
    "munge": "Give every machine another MUNGE key; running jobs go on.",
    "jwt": "Make the key of slurmrestd's tokens anew; tokens from before are void.",
    "database": "Give the database of Slurm's accounts another password.",
    "signer": "Sign what nodes converge themselves to with another key.",
    "encryption": "Encrypt all stored secrets anew, as secrets: of the spec says.",
    "tunnels": "Give the gateways between sites other keys; connections live on.",
}
"""Word -> one line of help."""


def command() -> None:
    """Make keys of a running cluster anew."""
