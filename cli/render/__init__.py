"""The one place where values become what a person or a program reads."""
