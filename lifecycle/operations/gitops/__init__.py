"""Clusters that follow a repository of specs: merged specs are applied, obstacles are reported."""
