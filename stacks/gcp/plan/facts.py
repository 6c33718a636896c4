"""What Google Cloud needs beyond the catalog, read from facts.yaml (pure data)."""

from __future__ import annotations

from functools import cache

import msgspec

from ...pulumi.data import read_data


class ServiceNeed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a part of a site needs in its project."""

    apis: list[str]
    """To be enabled."""
    permissions: list[str] = []
    """Permissions that the login needs there, in addition to those that `up` always needs."""


class Facts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file; each entry has its source next to it."""

    images: dict[str, dict[str, str]]
    """Distribution -> architecture -> image family."""
    boot_disk: str
    """Disk type of machine families that `boot_disks` doesn't name."""
    boot_disks: dict[str, str]
    """Series, or series and kind ("a4", "a3-ultragpu") -> disk type."""
    boot_disk_gib: int
    default_machine: str
    iap_ranges: list[str]
    peering_service: str
    peering_prefix: int
    lustre_port: int
    fabric_ranges: list[str]
    node_roles: list[str]
    burst_permissions: list[str]
    up_permissions: list[str]
    services: dict[str, ServiceNeed]
    """Part of a site, "always" for all -> what it needs."""
    bulk_limit: int
    spread_domains: int
    dense_reservations: list[str]
    """What machine types begin with whose reservations are dense always."""
    gke_service_prefix: int
    gke_system_machine: str
    gke_system_nodes: int
    proxy_range: str
    probe_ranges: list[str]

    def reserves_densely(self, machine: str) -> bool:
        """Return whether every reservation of a machine type is dense."""
        return machine.startswith(tuple(self.dense_reservations))

    def disk_type(self, machine: str) -> str:
        """Return the type of boot disk that a machine type takes."""
        series, *rest = machine.split("-")
        kinds = (f"{series}-{rest[0]}" if rest else "", series)
        return next((self.boot_disks[k] for k in kinds if k in self.boot_disks), self.boot_disk)

    def image(self, distribution: str, architecture: str) -> str | None:
        """Return the image family of a distribution; None when there is none."""
        return self.images.get(distribution, {}).get(architecture)


@cache
def facts() -> Facts:
    """Return the content of facts.yaml."""
    return read_data("gcp", "facts", Facts)
