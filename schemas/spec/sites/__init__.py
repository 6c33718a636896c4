"""Where machines come from: one file per provider, distinguished by the key `provider`.

`Site` is the register of providers: what is in it may be written in specs, and is looked for in the
folder of `stacks/` that is called as it.
"""

from collections.abc import Mapping
from typing import get_args

from .aws import AwsNetwork, AwsSite, AwsSubnets
from .azure import AzureNetwork, AzureSite, AzureSubnets
from .bare_metal import BareMetalNetwork, BareMetalSite, ListedHost, Ssh
from .gcp import GcpNetwork, GcpSite
from .local import LocalNetwork, LocalSite
from .oci import OciNetwork, OciSite, OciSubnets
from .simulated import SimulatedFaults, SimulatedSite
from .site import (
    CloudNetwork,
    CloudSite,
    CloudSsh,
    Dns,
    NodeRoles,
    Proxy,
    SiteModel,
)
from .ssh_fleet import SshFleetSite

Site = (
    AwsSite
    | AzureSite
    | BareMetalSite
    | GcpSite
    | LocalSite
    | OciSite
    | SimulatedSite
    | SshFleetSite
)
"""Any site; `provider:` chooses the branch."""

SITE_TYPES: Mapping[str, type[SiteModel]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(Site)
}
"""Type of the sites of each provider, by its name; their traits say what holds for it."""

__all__ = [
    "SITE_TYPES",
    "AwsNetwork",
    "AwsSite",
    "AwsSubnets",
    "AzureNetwork",
    "AzureSite",
    "AzureSubnets",
    "BareMetalNetwork",
    "BareMetalSite",
    "CloudNetwork",
    "CloudSite",
    "CloudSsh",
    "Dns",
    "GcpNetwork",
    "GcpSite",
    "ListedHost",
    "LocalNetwork",
    "LocalSite",
    "NodeRoles",
    "OciNetwork",
    "OciSite",
    "OciSubnets",
    "Proxy",
    "SimulatedFaults",
    "SimulatedSite",
    "Site",
    "SiteModel",
    "Ssh",
    "SshFleetSite",
]
