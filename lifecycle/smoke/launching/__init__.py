"""Starts the AllReduce of the smoke test: a Slurm job, or pods of a Kubernetes job."""
