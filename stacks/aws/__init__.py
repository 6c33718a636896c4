"""AWS: networks, machines and data as a Pulumi program; bursts through EC2 Fleet."""
