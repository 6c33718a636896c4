"""Slurm's accounting database: what a spec asks for, and how to get there (pure)."""
