"""What would change and why, which jobs it affects, and what needs explicit permission."""
