"""What nodes say of themselves: programs and devices, parts, counters of their ports."""
