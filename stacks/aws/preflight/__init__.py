"""What would stop `up` on AWS, checked before anything is created."""
