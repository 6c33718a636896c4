"""AWS: networks, machines and data as a Pulumi program; bursts through EC2 Fleet."""

MODULES = ("pulumi", "pulumi_aws", "boto3")
"""What the extra "aws" of gcluster brings, as modules; none of them is imported here."""
