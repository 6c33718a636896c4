"""The example's policies: a spec that keeps them all, and for each one that breaks just it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gcluster.schemas.diagnostics import Severity
from gcluster.schemas.load import load
from gcluster.schemas.policies import find_policies, judge, load_policies

_FOLDER = Path(__file__).parents[3] / "examples" / "policies"

_BREACHES = {
    "spend": ("max: 14", "max: 15", "the worst case is 900.8 USD per hour, at most 900"),
    "regions": (
        "region: us-east-1, zone_id: use1-az4",
        "region: us-west-2, zone_id: usw2-az1",
        "do not cover us-west-2",
    ),
    "markets": (
        "machine: head-node}",
        (
            "machine: head-node}\n"
            "  login: {site: east, role: login, machine: head-node, market: [spot]}"
        ),
        "a login that",
    ),
    "tags": ('cost-center: "4711", project', "project", "given: project"),
    "checkpoints": ("every: 30m", "every: 61m", "due every 60 minutes or less"),
    "no-public-address": (
        (
            "cidr: 10.45.0.0/16}, ssh: {tunnel: instance-connect}}\n\npools:\n"
            "  head: {site: east, role: controller, machine: head-node}"
        ),
        (
            "cidr: 10.45.0.0/16, admin_cidrs: [192.0.2.0/24]}}\n\npools:\n"
            "  head: {site: east, role: controller, machine: head-node, public_address: true}"
        ),
        'pool "head": its nodes would have public addresses',
    ),
    "quotas": ("{gpu_quota: 64}", "{share: 2}", 'account "nlp": it has no gpu_quota'),
}


def _judged(folder: Path) -> list[tuple[str, str]]:
    """Return (severity, summary) of what the policies next to the spec find."""
    spec = load(folder / "cluster.yaml")
    assert [found.summary for found in spec.diagnostics] == []
    path = find_policies(folder / "cluster.yaml")
    assert path is not None
    policies = load_policies(path)
    assert policies.diagnostics == ()
    return [(found.severity, found.summary) for found in judge(policies, spec)]


def test_the_example_keeps_its_policies() -> None:
    assert _judged(_FOLDER) == []


def test_every_policy_of_the_example_is_shown_here() -> None:
    policies = load_policies(_FOLDER / "policies.yaml").policies
    assert [compiled.policy.name for compiled in policies] == list(_BREACHES)


@pytest.mark.parametrize("name", _BREACHES)
def test_a_spec_that_breaks_one_policy_is_reported_which_and_whose(
    name: str, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(_FOLDER, tmp_path / "example"))
    right, wrong, answer = _BREACHES[name]
    spec = folder / "cluster.yaml"
    text = spec.read_text(encoding="utf-8")
    assert text.count(right) == 1
    spec.write_text(text.replace(right, wrong), encoding="utf-8")

    ((severity, summary),) = _judged(folder)
    owners = {
        c.policy.name: c.policy.owner for c in load_policies(_FOLDER / "policies.yaml").policies
    }
    assert summary.startswith(f'policy "{name}" of {owners[name]}: ')
    assert answer in summary
    assert severity == (Severity.WARNING if name == "quotas" else Severity.ERROR)
