"""What operators do to a running cluster: drain, resume, reboot, save and put back the queue."""
