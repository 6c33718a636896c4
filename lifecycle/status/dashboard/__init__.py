"""A page about a cluster on this machine's loopback address, out of the cluster's Prometheus."""
