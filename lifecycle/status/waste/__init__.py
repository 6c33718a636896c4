"""Who wastes what: GPUs, jobs and prices as a cluster's Prometheus has them."""
