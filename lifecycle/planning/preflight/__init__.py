"""What would stop a run, found and reported before anything is created."""
