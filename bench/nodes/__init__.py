"""Clusters of local nodes: up, one more node, drift, and what a change costs."""
