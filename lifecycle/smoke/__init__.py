"""The gate: an AllReduce over the cluster, its log read and judged, and what was proven written."""
