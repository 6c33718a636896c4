"""Who may make rented nodes: one agent at a time, and none while the cluster is taken down."""

LOCK = "burst.agent"
"""Stands beside the sites' locks; no site can be called so. `down` takes it too: an agent at work
would make nodes behind its back."""
