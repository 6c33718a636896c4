"""Assembles the data of a site: accounts, private endpoints, file systems, keys."""

from __future__ import annotations

from typing import Literal

import pulumi

from ...pulumi.program import SiteProgram
from ..plan.types import AccountPlan, ContainerPlan, FileSystemPlan, KeyPlan, SharePlan, SitePlan
from .access import Grant, make_identity
from .network import Network
from .storage import (
    Account,
    AccountArgs,
    CustomerKey,
    FileSystem,
    FileSystemArgs,
    PrivateEndpoints,
    PrivateEndpointsArgs,
    Share,
    ShareArgs,
)


class Data:
    """What the site keeps. Nothing in it hangs on what `down` takes away."""

    def __init__(
        self,
        here: SiteProgram[SitePlan],
        group: pulumi.Output[str],
        doors: pulumi.Output[str],
        network: Network,
    ) -> None:
        """Create all of it: data in `group`, its private endpoints in the group `doors`."""
        self._here, self._make, self._plan = here, here.make, here.plan
        self.group = group
        self.network = network
        self._identities: dict[tuple[str, str], pulumi.Output[str]] = {}
        self.container_ids: dict[str, pulumi.Output[str]] = {}
        """ACCOUNT/CONTAINER -> id, of those whose resource group is known."""
        self.devices: dict[str, pulumi.Output[str]] = {}
        """File system -> what is mounted of it."""
        accounts = {item.name: self._account(item) for item in self._plan.storage.accounts}
        for account, made in accounts.items():
            for container, identifier in made.container_ids.items():
                self.container_ids[f"{account}/{container}"] = identifier
        for item in self._plan.storage.containers:
            self._known(item)
        ids = {name: made.account_id for name, made in accounts.items()}
        self._private_endpoints(ids, doors, "doors", "blob")
        folders = {a.name: ids[a.name] for a in self._plan.storage.accounts if a.hierarchical}
        self._private_endpoints(folders, doors, "dfs-doors", "dfs")
        shares = {plan.account: self._share(plan) for plan in self._plan.storage.shares}
        of_shares = {account: made.account_id for account, made in shares.items()}
        self._private_endpoints(of_shares, doors, "file-doors", "file")
        for share in self._plan.storage.shares:
            self.devices[share.name] = shares[share.account].device
        for system in self._plan.storage.file_systems:
            self.devices[system.name] = self._file_system(system).device

    def _account(self, plan: AccountPlan) -> Account:
        return self._make(
            Account,
            f"data-{plan.name}",
            AccountArgs(
                names=self._plan.names,
                region=self._plan.region,
                resource_group=self.group,
                plan=plan,
                key=self._customer_key(plan.key),
            ),
        )

    def _known(self, item: ContainerPlan) -> None:
        """Register a container of an account that exists in the site's resource group."""
        key = f"{item.account}/{item.name}"
        if key in self.container_ids or not self._plan.resource_group:
            return
        account = (
            f"/subscriptions/{self._plan.subscription}/resourceGroups/{self._plan.resource_group}"
            f"/providers/Microsoft.Storage/storageAccounts/{item.account}"
        )
        self.container_ids[key] = pulumi.Output.from_input(
            f"{account}/blobServices/default/containers/{item.name}"
        )

    def _share(self, plan: SharePlan) -> Share:
        return self._make(
            Share,
            f"nfs-{plan.name}",
            ShareArgs(
                names=self._plan.names,
                region=self._plan.region,
                resource_group=self.group,
                plan=plan,
                key=self._customer_key(plan.key),
            ),
        )

    def _private_endpoints(
        self,
        accounts: dict[str, pulumi.Output[str]],
        group: pulumi.Output[str],
        what: str,
        part: Literal["blob", "file", "dfs"],
    ) -> None:
        if not accounts:
            return
        subnets = self.network.subnet_ids
        self._make(
            PrivateEndpoints,
            what,
            PrivateEndpointsArgs(
                names=self._plan.names,
                region=self._plan.region,
                resource_group=group,
                accounts={**accounts},
                part=part,
                subnet_id=subnets.get("storage", subnets["compute"]),
                vnet_id=self.network.vnet_id,
                makes_zone=not self._plan.network.existing,
            ),
        )

    def _file_system(self, plan: FileSystemPlan) -> FileSystem:
        return self._make(
            FileSystem,
            f"lustre-{plan.name}",
            FileSystemArgs(
                names=self._plan.names,
                region=self._plan.region,
                resource_group=self.group,
                plan=plan,
                subnet_id=self.network.subnet_ids["storage"],
                container_id=self._id_of(plan.container),
                logging_id=self._id_of(plan.logging),
                key=self._customer_key(plan.key),
            ),
        )

    def _id_of(self, item: ContainerPlan | None) -> pulumi.Output[str] | None:
        return None if item is None else self.container_ids[f"{item.account}/{item.name}"]

    def _customer_key(self, plan: KeyPlan | None) -> CustomerKey | None:
        if plan is None:
            return None
        identity = self.key_user(plan, "data", self.group)
        return CustomerKey(url=plan.url, key_id=plan.key, identity_id=identity)

    def key_user(self, plan: KeyPlan, what: str, group: pulumi.Output[str]) -> pulumi.Output[str]:
        """Return an identity that may use a key, made once for each key and what it encrypts."""
        made = self._identities.get((what, plan.url))
        if made is None:
            number = sum(known == what for known, _ in self._identities)
            name = f"{what}-key-{number}" if number else f"{what}-key"
            grants = () if plan.identity else (Grant(what="use", role="key-user", scope=plan.key),)
            made = make_identity(
                self._here,
                name,
                group,
                existing=plan.identity,
                grants=grants,
                kept=what == "data",
            )
            self._identities[what, plan.url] = made
        return made
