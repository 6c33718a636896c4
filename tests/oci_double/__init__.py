"""OCI for tests: calls held to the models of its own SDK, and what its provider makes of a program.

Nothing here reaches OCI, and nothing was recorded from a tenancy.
"""
