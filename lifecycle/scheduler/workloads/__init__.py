"""Workloads as jobs: submitted to the cluster's Slurm, listed, followed and ended."""
