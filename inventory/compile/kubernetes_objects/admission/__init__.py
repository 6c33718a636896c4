"""What the API server refuses, and how pods are confined."""
