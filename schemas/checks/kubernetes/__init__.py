"""Checks of clusters whose scheduler is Kubernetes."""
