"""The scheduler of a cluster, Slurm, Kubernetes or none, behind one interface."""
