"""Workloads as batch scripts for Slurm: readable, and usable by sbatch without gcluster (pure)."""

from .batch import batch_script, batch_scripts

__all__ = ["batch_script", "batch_scripts"]
