"""How a running cluster is: its conditions, and what its controller and scheduler say of it."""
