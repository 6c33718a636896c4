"""The scheduler of a cluster, Slurm or Kubernetes, behind one interface."""
