"""A table knows what roles write into Slurm's files, and what of it a spec may replace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from gcluster.schemas.stack.slurm_settings import SettingsFileName, settings_of_files

ROLES = Path(__file__).parents[2] / "roles"
_NAME = re.compile(r"^(?:\{%-? .*? -?%\})?([A-Z][A-Za-z0-9]+)=", re.MULTILINE)
_BY_LINES_OF_VARIABLES = {"slurm": {"JobContainerType"}, "cgroup": set(), "slurmdbd": set()}


@pytest.mark.parametrize(
    ("file", "template"),
    [
        ("slurm", "slurm/templates/slurm.conf.j2"),
        ("cgroup", "slurm/templates/cgroup.conf.j2"),
        ("slurmdbd", "slurmdbd/templates/slurmdbd.conf.j2"),
    ],
)
def test_what_the_template_writes_is_known_to_be_written(
    file: SettingsFileName, template: str
) -> None:
    known = settings_of_files()[file]
    text = (ROLES / template).read_text(encoding="utf-8")
    written = set(_NAME.findall(text)) | _BY_LINES_OF_VARIABLES[file]
    assert written - {"SchedulerParameters"} == {*known.written, *known.replaces}
    assert written <= {*known.all_names}
    role = template.partition("/")[0]
    for name in known.replaces:
        assert f"{name}={{{{ {role}_settings.{name} | default(" in text


def test_the_role_leaves_out_of_the_rest_what_it_writes_with_the_specs_value() -> None:
    variables = yaml.safe_load((ROLES / "slurm/vars/main.yml").read_text(encoding="utf-8"))
    assert variables["slurm_replaced_settings"] == settings_of_files()["slurm"].replaces
