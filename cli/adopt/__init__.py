"""`gcluster adopt`: a spec of what runs already."""

WORDS = {
    "slurm": "Adopt a Slurm cluster, by what scontrol prints of it.",
    "ansible": "Adopt the hosts of an Ansible inventory.",
    "parallelcluster": "Adopt a cluster file of AWS ParallelCluster 3.",
    "cluster-toolkit": "Adopt a blueprint of Google's Cluster Toolkit.",
}
"""Word -> one line of help."""


def command() -> None:
    """Write a spec of what runs already, and list what it doesn't say."""
