"""The images that local nodes start from: the base, built here, and golden ones made of it."""
