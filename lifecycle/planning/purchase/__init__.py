"""Buying pools by the fallback list of their market: which option is next, and the attempts."""

"""Buying pools by the fallback list of their market: which option is next, and the attempts."""
