"""A node that fails is noticed within the time that the documentation states."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
STATED_S = 240


def written_default(name: str, conf: str) -> int:
    """Return what slurm.conf has of a setting where the spec says no other."""
    (value,) = re.findall(rf"^{name}=\{{\{{ .* \| default\((\d+)\) \}}\}}$", conf, re.MULTILINE)
    return int(value)


def test_a_failed_node_is_noticed_within_four_minutes() -> None:
    """It looks each third of SlurmdTimeout, and counts a node as down at the second after that.

    (`ping_nodes` of slurmctld, Slurm 24.11.) A message to the node has a timeout of its own.
    """
    defaults = yaml.safe_load((ROOT / "roles/slurm/defaults/main.yml").read_text(encoding="utf-8"))
    conf = (ROOT / "roles/slurm/templates/slurm.conf.j2").read_text(encoding="utf-8")
    message = written_default("MessageTimeout", conf)
    assert "SlurmdTimeout={{ slurm_node_timeout }}" in conf
    assert defaults["slurm_node_timeout"] * 5 / 3 + message <= STATED_S
    assert "within four minutes" in (ROOT / "docs/operations.md").read_text(encoding="utf-8")


def test_a_job_has_the_time_to_exit_that_slurm_requests() -> None:
    """At least five times MessageTimeout, or nodes drain that are well (slurm.conf(5))."""
    conf = (ROOT / "roles/slurm/templates/slurm.conf.j2").read_text(encoding="utf-8")
    message = written_default("MessageTimeout", conf)
    unkillable = written_default("UnkillableStepTimeout", conf)
    assert unkillable >= 5 * message
