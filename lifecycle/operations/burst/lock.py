"""Who may make rented nodes: one agent at a time, and none while the cluster is taken down."""

LOCK = "burst.agent"
"""Stored with the sites' locks; no site can have this name. `down` takes it too: a running agent
would create nodes meanwhile."""
