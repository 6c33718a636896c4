"""Checks of versions that have to go together."""
