"""What is written down of an add-on while it is brought; kubectl and the add-on are doubles."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from gcluster.inventory.compile.kubernetes_objects.addons import ChosenAddon
from gcluster.lifecycle.kubernetes.addons import step as steps
from gcluster.lifecycle.kubernetes.addons.standing import Standing, WantedAddon
from gcluster.lifecycle.kubernetes.addons.step import AddonsStep
from gcluster.lifecycle.progress import silent

from . import charts
from .lab import NEEDED, facts_of, write
from .test_rendered import addon
from .told import ToldKubectl

KINDS = """\
configmaps   cm   v1         true    ConfigMap
jobs              batch/v1   true    Job
"""
FAILED = json.dumps({"status": {"conditions": [{"type": "Failed", "status": "True"}]}})


def test_a_job_that_failed_is_in_the_record_so_it_goes_with_its_add_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = charts.hook("before", "pre-install").encode()
    monkeypatch.setattr(steps, "artefact", lambda _: text)
    known = msgspec.structs.replace(addon(), name="jobs")
    one = WantedAddon(chosen=ChosenAddon(addon=known), content="0" * 32)
    kubectl = ToldKubectl({"api-resources": KINDS, "get job": FAILED})
    spec = write(tmp_path)
    spec.write_text(spec.read_text().replace("[widgets]", "[]"), encoding="utf-8")
    step = AddonsStep(kubectl, facts_of(spec, *NEEDED), (), silent)
    (stopped,) = step.bring(Standing(added=("jobs",), wanted=(one,)))
    assert stopped.code == "GC1068"
    applied = [json.loads(text)["items"][0] for text in kubectl.given if '"items"' in text]
    (record,) = (each for each in applied if each["kind"] == "ConfigMap")
    objects = json.loads(record["data"]["objects"])
    assert objects[0][:4] == ["batch", "Job", "widgets-system", "before"]
