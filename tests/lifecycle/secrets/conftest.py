"""Stores for the tests of secrets: those of the tests of state."""

from tests.lifecycle.state.conftest import bucket, directory, start_actor, store, url

__all__ = ["bucket", "directory", "start_actor", "store", "url"]
