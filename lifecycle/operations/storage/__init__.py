"""The storage benchmark: what shared file systems take from nodes, and give to them."""
