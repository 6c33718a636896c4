"""How a node is taken out of service: by Slurm, by Kubernetes, or by a notice at its logins."""
