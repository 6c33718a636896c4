"""Verbs that remove clusters and locks."""
