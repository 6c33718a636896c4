"""Firmware of a machine: what it has, what differs from what is wanted, and a guarded update.

Runs with Python's standard library alone (3.9): `report` on the node itself, `bmc` and `update` on
the machine that reaches the BMCs.
"""
