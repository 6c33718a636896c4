"""Slurm's accounting database: the spec's content, and the commands to reach it (pure)."""
