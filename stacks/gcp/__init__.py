"""Google Cloud sites: VPCs, the fabrics' own networks, instances, Managed Lustre, buckets."""

MODULES = ("pulumi", "pulumi_gcp", "google.protobuf", "google.auth", "requests")
"""What the extra "gcp" of gcluster brings, as modules; none of them is imported here."""
