"""Bundles: all that a spec needs, collected where there is a network, used where there is none."""
