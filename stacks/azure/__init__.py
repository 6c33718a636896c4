"""Microsoft Azure: scale sets on InfiniBand, Managed Lustre, blob containers.

`layout` and what it imports need no SDK; the components, elastic and preflight import theirs.
"""

MODULES = (
    "pulumi",
    "pulumi_azure_native",
    "google.protobuf",
    "azure.core",
    "azure.identity",
    "azure.mgmt.compute",
)
"""What the extra "azure" of gcluster brings, as modules; none of them is imported here."""
