"""Verbs that write, check and price specs; none touches a cluster."""
