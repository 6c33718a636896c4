"""Slurm: its daemons, and what slurm.conf says of nodes, queue and accounts (pure)."""
