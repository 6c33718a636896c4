"""What a spec has on a cloud is found without a query: a key, and a bucket of state."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.planning.preflight.permissions import needs_of

_SPEC = """\
apiVersion: gcluster/v1
name: demo
{state}sites: {{hall: {{provider: simulated}}}}
pools:
  head: {{site: hall, role: controller}}
  gpu: {{site: hall, machine: sim.h100x8, count: 2}}
scheduler: {{type: slurm}}
"""


def _spec(folder: Path, state: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(_SPEC.format(state=f'state: "{state}"\n' if state else ""))
    return path


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ("s3://acme/demo", ("arn:aws:s3:::acme", "demo")),
        ("s3://acme?region=cn-north-1", ("arn:aws-cn:s3:::acme", "")),
    ],
)
def test_a_bucket_of_aws_is_named_though_no_site_is_there(
    tmp_path: Path, state: str, found: tuple[str, str]
) -> None:
    needs = needs_of(_spec(tmp_path, state), "aws")
    assert (needs.kinds, needs.state) == (frozenset(), found)


@pytest.mark.parametrize(
    "state", ["", "gs://acme/demo", "s3://acme/demo?endpoint=https%3A%2F%2Fstore.example.org"]
)
def test_where_nothing_of_it_is_on_that_cloud_it_is_reported(tmp_path: Path, state: str) -> None:
    with pytest.raises(LifecycleError, match="no site of provider aws"):
        needs_of(_spec(tmp_path, state), "aws")
