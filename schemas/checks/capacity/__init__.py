"""Checks of capacity: pools, machines, hosts, where they are and how they are bought."""
