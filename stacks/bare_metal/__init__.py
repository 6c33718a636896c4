"""Hosts that exist already: nothing is made or removed."""
