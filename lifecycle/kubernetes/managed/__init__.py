"""Kubernetes whose control plane a cloud runs: reached from this machine by the cloud's login."""
