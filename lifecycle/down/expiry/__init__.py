"""Automatic removal of clusters: after a set time, or when unused."""
