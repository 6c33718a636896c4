"""Facts of nodes: programs and devices, parts, counters of their ports."""
