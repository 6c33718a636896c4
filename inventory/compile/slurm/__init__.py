"""Slurm: its daemons, and slurm.conf's content on nodes, queue and accounts (pure)."""
