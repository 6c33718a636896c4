"""Azure for tests: what its interfaces take, and what its provider makes of a program.

Nothing here reaches Azure.
"""
