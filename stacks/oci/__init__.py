"""Oracle Cloud Infrastructure: Pulumi makes what stays, elastic nodes are launched."""

MODULES = ("pulumi", "pulumi_oci", "google.protobuf", "oci")
"""What its extra of gcluster brings."""
