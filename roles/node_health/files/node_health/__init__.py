"""Whether this node is fit for jobs: looked at on the node, with Python's standard library alone.

Slurm runs it as HealthCheckProgram, a systemd timer runs it too, and a person runs `node-health`.
Python 3.9 is enough (EL 9).
"""
