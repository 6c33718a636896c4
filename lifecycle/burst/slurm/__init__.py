"""Slurm behind the burst agent's `Scheduler`: one SSH exec a look, scontrol to act."""

from .controller import SlurmController

__all__ = ["SlurmController"]
