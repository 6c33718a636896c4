"""Secrets and keys of a cluster: how each is made, and read where the spec says it is."""
