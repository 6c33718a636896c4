"""What would stop `up` on OCI, checked before anything is created."""
