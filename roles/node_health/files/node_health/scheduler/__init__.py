"""What the node tells its scheduler, and what that says of it: Slurm or Kubernetes."""
