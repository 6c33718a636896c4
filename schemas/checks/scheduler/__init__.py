"""Checks of partitions, accounts, users, topology and the scheduler's services."""
