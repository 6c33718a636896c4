"""Checks of the fast network between nodes, and of the floor that a test has to reach on it."""
