"""What would change and why, whom it hits and disturbs, and what may not be done unasked."""
