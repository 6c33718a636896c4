"""Checks of file systems, object storage and checkpoints."""
