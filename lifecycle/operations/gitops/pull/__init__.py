"""Nodes that converge themselves: what is published, what they report, how `up` follows."""
