"""Clusters at size, where nodes are simulated: up, Slurm, Kubernetes."""
