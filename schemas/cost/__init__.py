"""What a cluster costs an hour and draws, what quotas it needs, and the bill of a plan."""
