"""Every input of every example is one that OCI's own models take (the SDK `oci`).

Each resource becomes the call that makes it (tests/oci_double/requests.py), which the double of OCI
holds to the SDK: names, types, what is required, enumerations. Each is found again as if a killed
run had made it. Then all is deleted, dependents first, as the engine does. What a model leaves
open, and only the service checks, is not seen.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from oci_cases import SITE, spec_of, with_pool
from oci_double import LOGIN
from tests.oci_double.cloud import OciCloud
from tests.oci_double.operations import CLIENTS, complaints, operations
from tests.oci_double.requests import KINDS
from tests.oci_double.server import Tenancy, serve
from tests.pulumi_double.clouds import type_of
from tests.pulumi_double.replay import Made, replay
from tests.pulumi_double.sites import CloudSite, cloud_sites

from gcluster.schemas.catalog import load_catalog
from gcluster.stacks.oci.api import Api
from gcluster.stacks.oci.leftovers import begun_ids, listers
from gcluster.stacks.oci.plan.layout import site_plan
from gcluster.stacks.pulumi.engine.checkpoint import StackResource

OWN_IMAGE = with_pool(spec_of("BM.GPU.B200.8"), "head", image="ocid1.image.oc1.iad.own")
SET_AGAIN = {"oci:Core/defaultSecurityList:DefaultSecurityList", "oci:Dns/rrset:Rrset"}
"""What is the same where it is set twice."""
SITES = [
    *(site for site in cloud_sites() if site.cloud == "oci"),
    CloudSite("image of one's own", OWN_IMAGE, SITE, "oci"),
]


@pytest.fixture
def tenancy() -> Tenancy:
    return Tenancy()


@pytest.fixture
def cloud(tenancy: Tenancy, monkeypatch: pytest.MonkeyPatch) -> Iterator[OciCloud]:
    server = serve(tenancy)
    threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    ).start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("CLIENT_HOST_OVERRIDES", ";".join(f"oci_{n}={url}" for n in CLIENTS))
    yield OciCloud(url)
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("site", SITES, ids=[site.id for site in SITES])
def test_oci_takes_every_input_and_nothing_is_left(
    site: CloudSite, tenancy: Tenancy, cloud: OciCloud
) -> None:
    made = list(replay(site.recorded(), cloud))
    assert len(made) == len(
        [r for r in site.recorded().resources if r.custom and not r.type.startswith("pulumi:")]
    )
    assert tenancy.existing() != []
    api = Api("us-ashburn-1", login=LOGIN)
    for one in made:
        is_found_again(site, cloud, api, one)
    for one in reversed(made):
        cloud.delete(one.resource.urn, one.identifier, one.inputs)
    assert tenancy.existing() == []


def is_found_again(site: CloudSite, cloud: OciCloud, api: Api, one: Made) -> None:
    """Look for one thing as what a killed run had begun to make, all others being known."""
    urn, type_ = one.resource.urn, type_of(one.resource.urn)
    answer = cloud.read(urn, one.identifier, {}) if KINDS[type_].autonamed else None
    inputs = cloud.checked(urn, one.inputs, answer)
    begun = (StackResource(urn=urn, type=type_, inputs=inputs),)
    plan = site_plan(site.spec, site.name, load_catalog())
    found = begun_ids(api, plan, begun, ())
    if type_ in SET_AGAIN:
        assert found == {}
        return
    there = cloud.read(urn, found[urn], {})
    assert there is not None
    assert there["id"] == one.identifier
    assert begun_ids(api, plan, begun, {one.identifier, found[urn]}) == {}


def test_every_kind_of_the_table_is_in_an_example() -> None:
    used = {type_of(r.urn) for site in SITES for r in site.recorded().resources}
    assert KINDS.keys() <= used
    assert listers().keys() == KINDS.keys() - SET_AGAIN


def test_what_no_model_has_is_seen() -> None:
    create = operations("core.VirtualNetworkClient")["create_subnet"]
    given = {"vcnId": 7, "displayName": "x", "shade": "blue"}
    assert sorted(complaints(create, {"page": "2"}, given)) == [
        "CreateSubnetDetails.shade: CreateSubnetDetails has no such member",
        "CreateSubnetDetails.vcnId: 7 is no str",
        "CreateSubnetDetails: CreateSubnetDetails requires compartmentId",
        "create_subnet has no parameter page",
    ]
    launch = operations("core.ComputeClient")["launch_instance"]
    wrong = {"compartmentId": "c", "availabilityDomain": "a", "sourceDetails": {"sourceType": "x"}}
    assert list(complaints(launch, {}, wrong)) == [
        "LaunchInstanceDetails.sourceDetails: InstanceSourceDetails has no such kind"
    ]
