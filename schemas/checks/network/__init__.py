"""Checks of address ranges, access from outside, existing networks and links between sites."""
