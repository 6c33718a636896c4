"""Monitoring under Kubernetes: the chart's values, its secrets, and the operator's objects."""
