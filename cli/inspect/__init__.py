"""Verbs that show what is there; drift alone changes it, with --fix."""
