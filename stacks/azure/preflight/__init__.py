"""What would stop `up` on Azure, checked before anything is created."""
