"""Acme: as much of a provider as plans need."""
