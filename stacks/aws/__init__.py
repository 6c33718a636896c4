"""AWS: networks, machines and data as a Pulumi program; bursts through EC2 Fleet."""

MODULES = ("pulumi", "pulumi_aws", "google.protobuf", "boto3", "botocore")
"""What the extra "aws" of gcluster brings, as modules; none of them is imported here."""
