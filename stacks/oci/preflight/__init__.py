"""What would stop `up` on OCI, asked before anything is made."""
