"""Google for tests: its own discovery documents, and what its provider makes of a program.

The documents are those that google-api-python-client carries. Nothing here reaches Google.
"""
