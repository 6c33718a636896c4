"""What happens, in which order, and how it survives being killed anywhere."""
