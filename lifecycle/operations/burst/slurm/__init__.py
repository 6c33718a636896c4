"""Slurm as the burst agent observes it by one SSH exec, and acts on it by scontrol."""

from .controller import SlurmController

__all__ = ["SlurmController"]
