"""What would stop `up` on Google Cloud, checked before anything is created."""
