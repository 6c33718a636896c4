"""Whether the parts for a cloud are installed, asked without importing them."""

from __future__ import annotations

from importlib.util import find_spec

from gcluster.stacks.provider import provider_error

MODULES = {
    "aws": ("pulumi", "pulumi_aws", "boto3"),
    "gcp": ("pulumi", "pulumi_gcp", "google.cloud.compute_v1"),
    "azure": ("pulumi", "pulumi_azure_native", "azure.identity", "azure.mgmt.compute"),
}
"""What an extra of gcluster brings, as modules."""


def require(cloud: str) -> None:
    """Go on where the cloud's extra is installed.

    Raises:
        ProviderError: GC967 with the command that installs it.
    """
    missing = [module for module in MODULES[cloud] if not _there(module)]
    if missing:
        raise provider_error(
            "GC967",
            f"the parts for {cloud} are not installed: {', '.join(missing)}",
            hint=f"pip install 'gcluster[{cloud}]'",
        )


def _there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # of its parent
        return False
