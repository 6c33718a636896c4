"""What has changed since `up`: at the sites, on nodes, in fabric and scheduler."""
