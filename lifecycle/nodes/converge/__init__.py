"""Nodes to what the spec says: stamps read, differences found, roles run, stamps written."""
