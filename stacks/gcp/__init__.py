"""Google Cloud sites: VPCs, the fabrics' own networks, instances, Managed Lustre, buckets."""
