"""What was done to a cluster: by whom, why and with what, and where that is sent."""
