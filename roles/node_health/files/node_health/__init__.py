"""Health check of this node, run on the node with Python's standard library alone.

Slurm runs it as HealthCheckProgram, a systemd timer runs it too, and `node-health` runs it by hand.
Python 3.9 is enough (EL 9).
"""
