"""YAML text to plain data that knows where everything stands."""
