"""Accounts and maintenance windows: those of a running Slurm compared with the spec."""
