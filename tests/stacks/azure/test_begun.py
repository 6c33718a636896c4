"""What a killed run had begun to make is looked for where it would be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.azure_double.addresses import SUBSCRIPTION, templates

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.azure.leftovers import addresses, begun_ids
from gcluster.stacks.azure.plan.layout import site_plan
from gcluster.stacks.pulumi.data import read_data
from gcluster.stacks.pulumi.engine.checkpoint import StackResource

from .azure_double import AzureDouble
from .recorded_cases import FULL, spec_of

PLAN = site_plan(spec_of(FULL), "east", load_catalog())
GROUP = f"/subscriptions/{PLAN.subscription}/resourceGroups/base1a2b3c4d"
OURS = PLAN.labels.tags()
ACCOUNT = f"{GROUP}/providers/Microsoft.Storage/storageAccounts/acme"


def begun(kind: str, **inputs: Any) -> StackResource:
    known = {"resourceGroupName": "base1a2b3c4d", "azureApiVersion": "2024-01-01"}
    urn = f"urn:pulumi:east::gcluster-research::azure-native:{kind}::it"
    return StackResource(urn=urn, type=f"azure-native:{kind}", inputs=known | inputs)


def test_each_kind_is_where_the_invented_cloud_has_it() -> None:
    group = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{{in_resourceGroupName}}"
    assert {
        f"azure-native:{kind.replace('.', ':')}": address.replace("{", "{in_").replace(
            "{in_group}", group
        )
        for kind, address in addresses().items()
    } == templates()
    permissions = read_data("azure", "permissions", dict[str, Any])
    assert addresses().keys() == permissions["resources"].keys()


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ({"tags": OURS}, True),
        ({"tags": {}}, False),
        ({"tags": OURS | {"gcluster-site": "west"}}, False),
        (None, False),
    ],
    ids=["ours", "untagged", "of another site", "not there"],
)
def test_an_account_is_taken_up_where_it_is_the_sites(answer: object, taken: bool) -> None:
    azure = AzureDouble()
    if answer is not None:
        azure.answers[ACCOUNT] = answer
    one = begun("storage:StorageAccount", accountName="acme", tags=OURS)
    assert begun_ids(azure.api(), PLAN, (one,), ()) == ({one.urn: ACCOUNT} if taken else {})


def test_what_takes_no_tags_is_taken_up_in_its_place_and_what_the_stack_has_is_not() -> None:
    azure = AzureDouble()
    where = f"{GROUP}/providers/Microsoft.Network/virtualNetworks/net/subnets/compute7"
    azure.answers[where] = {}
    one = begun("network:Subnet", virtualNetworkName="net", subnetName="compute7")
    assert begun_ids(azure.api(), PLAN, (one,), ()) == {one.urn: where}
    assert begun_ids(azure.api(), PLAN, (one,), {where.upper()}) == {}
