"""Nodes that a live cluster does without: the queue in its state, and what works through it."""
