"""Clusters follow a repository of specs: what is merged is applied, and what can't be is said."""
