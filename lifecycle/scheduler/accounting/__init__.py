"""Accounts and maintenance windows as a running Slurm has them, and as the spec says."""
