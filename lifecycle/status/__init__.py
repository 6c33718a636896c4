"""Status of a running cluster: conditions, and what its controllers and scheduler report."""
