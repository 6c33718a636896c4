"""A running Slurm: what scontrol prints and slurm.conf says."""
