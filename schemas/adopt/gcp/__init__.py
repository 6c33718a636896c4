"""Blueprints of Google's Cluster Toolkit, for Slurm and for GKE."""
