"""Sites on AWS for the tests, a moto server that simulates AWS, and recorded answers."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from botocore.awsrequest import AWSResponse
from tests.stacks.recorded_graph import Graph

from gcluster.schemas.catalog import Catalog, load_catalog
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.schemas.spec import ClusterSpec
from gcluster.schemas.structure.compose import compose
from gcluster.schemas.structure.fit import fit
from gcluster.stacks.aws.api import Api
from gcluster.stacks.aws.plan.layout import site_plan
from gcluster.stacks.aws.plan.types import SitePlan
from gcluster.stacks.pulumi.preflight import nothing_exists
from gcluster.stacks.pulumi.program import record_site
from gcluster.stacks.pulumi.recording.graph import RecordedGraph

CASES = Path(__file__).parents[2] / "cases/stacks/aws"
SITE = "east"

BASE = """
apiVersion: gcluster/v1
name: demo
owner: ops@example.edu
sites:
  east:
    provider: aws
    region: us-east-1
    zone_id: use1-az4
    network: {cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}
pools:
  head: {site: east, role: controller, machine: m7i.4xlarge}
  train: {site: east, machine: p5.48xlarge, count: 2}
scheduler: {type: slurm}
"""

IMAGE = BASE.replace("    zone_id", "    image: ami-1e749f67\n    zone_id")
"""With an image that moto knows."""
BUYS = BASE.replace("count: 2", "count: 2, market: [{buy_capacity_block: 7d}]")
NONE = nothing_exists()


def spec_of(text: str = BASE) -> ClusterSpec:
    """Return a spec out of YAML: of the right form, whatever the checks say of its meaning."""
    document = compose(text, file="cluster.yaml").document
    assert document is not None
    spec = fit(ClusterSpec, document, file="cluster.yaml").value
    assert isinstance(spec, ClusterSpec)
    return spec


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    """Give gcluster's own catalog."""
    return load_catalog()


@pytest.fixture
def recorded(catalog: Catalog) -> Callable[..., RecordedGraph]:
    """Give what records a spec's site offline."""

    def run(text: str = BASE, *, site: str = SITE, preview: bool = False) -> RecordedGraph:
        return record_site(spec_of(text), site, catalog, preview=preview)

    return run


@pytest.fixture
def graph(recorded: Callable[..., RecordedGraph]) -> Callable[..., Graph]:
    """Return the same as a graph that can be queried."""
    return lambda text=BASE: Graph(recorded(text))


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    """Run a moto server: EC2's API, kept in memory; yields its address."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  # graphs are tested without it

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def api(moto: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    """Return an empty account in us-east-1, queried through the real boto3."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    made = Api("us-east-1", endpoint_url=moto)
    yield made
    import urllib.request  # noqa: PLC0415  # for moto's own reset only

    urllib.request.urlopen(urllib.request.Request(f"{moto}/moto-api/reset", method="POST")).read()  # noqa: S310  # our own server


class Recorded:
    """Answers AWS gave or documents, for operations that moto lacks; the parser is botocore's."""

    def __init__(self, api: Api) -> None:
        """Answer for this account."""
        self._api = api
        self.calls: list[str] = []
        self._answers: dict[str, AWSResponse] = {}
        self.only_if: Callable[[str], bool] = lambda _: True
        """What the request's body must hold; others go on to moto."""

    def answer(self, service: str, operation: str, name: str, status: int = 200) -> None:
        """Let an operation ("DescribeInstanceTopology") be answered by a file of the cases."""
        body = (CASES / "recorded" / name).read_bytes()
        self.record(service, operation, body, status)

    def record(self, service: str, operation: str, body: bytes, status: int = 200) -> None:
        """Let an operation be answered by these bytes; what was said before counts no more."""
        is_new = operation not in self._answers
        self._answers[operation] = AWSResponse("https://recorded", status, {}, _Raw(body))

        def reply(request: Any, **_: Any) -> AWSResponse | None:
            sent = request.body.decode() if isinstance(request.body, bytes) else request.body
            if not self.only_if(str(sent)):
                return None
            self.calls.append(operation)
            return self._answers[operation]

        if is_new:
            events = self._api.client(service).meta.events
            events.register_first(f"before-send.{service}.{operation}", reply)

    def console(self, text: str) -> None:
        """Let every console show this text."""
        encoded = base64.b64encode(text.encode()).decode()
        xml = f"<GetConsoleOutputResponse><output>{encoded}</output></GetConsoleOutputResponse>"
        self.record("ec2", "GetConsoleOutput", xml.encode())


class _Raw:
    """What botocore reads a body from."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._body


@pytest.fixture
def aws_api(api: Api) -> Recorded:
    """Give recorded answers."""
    return Recorded(api)


def with_count(spec: ClusterSpec, pool: str, count: int) -> ClusterSpec:
    """Return the spec with another size of a pool."""
    pools = {**spec.pools, pool: msgspec.structs.replace(spec.pools[pool], count=count)}
    return msgspec.structs.replace(spec, pools=pools)


@pytest.fixture
def planned(catalog: Catalog) -> Callable[..., SitePlan]:
    """Give a spec's plan."""
    return lambda text=IMAGE: site_plan(spec_of(text), SITE, catalog)


@pytest.fixture
def calm(aws_api: Recorded) -> Recorded:
    """Simulate an AWS that accepts everything that moto has no API for."""
    for operation in ("CreateVpc", "CreatePlacementGroup"):
        aws_api.answer("ec2", operation, "dry-run.xml", 412)
    aws_api.answer("pricing", "GetProducts", "prices.json")
    quota = b'{"Quota": {"Value": 100000.0, "QuotaName": "P"}}'
    aws_api.record("service-quotas", "GetServiceQuota", quota)
    return aws_api


def listed(findings: Iterable[Diagnostic]) -> list[tuple[str, str]]:
    """Return codes and summaries, in order."""
    return [(finding.code, finding.summary) for finding in findings]


def existing(subnet: str, vpc: str, group: str) -> str:
    return BASE.replace(
        "{cidr: 10.40.0.0/16, admin_cidrs: [192.0.2.0/24]}",
        f"{{vpc: {vpc}, subnets: {{compute: {subnet}}}, security_groups: [{group}]}}",
    )
