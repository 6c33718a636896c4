"""What would stop a run, found and said before anything is made."""
