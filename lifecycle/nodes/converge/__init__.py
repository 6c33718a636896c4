"""Converges nodes to the spec: reads stamps, finds differences, runs roles, writes stamps."""
