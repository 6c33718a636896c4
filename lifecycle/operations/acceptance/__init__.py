"""What a team signs before it takes over a cluster: tests, their results, one signed report."""
