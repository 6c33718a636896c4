"""What is written down of an add-on while it is brought; kubectl and the add-on are doubles."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pytest

from gcluster.inventory.compile.kubernetes_objects.addons import ChosenAddon
from gcluster.inventory.compile.kubernetes_objects.objects import new
from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.addons import step as steps
from gcluster.lifecycle.kubernetes.addons.changes import AddonChanges, DesiredAddon
from gcluster.lifecycle.kubernetes.addons.ownership import AddonStopped, fields_of
from gcluster.lifecycle.kubernetes.addons.record import Placed, Record, applied_of
from gcluster.lifecycle.kubernetes.addons.step import AddonsStep
from gcluster.lifecycle.kubernetes.objects import key_of

from . import charts
from .kubectl_double import KubectlDouble, row
from .lab import NEEDED, facts_of, write
from .test_rendered import addon

KINDS = """\
configmaps   cm   v1         true    ConfigMap
jobs              batch/v1   true    Job
"""
WRITERS = '[{"manager":"gcluster-addons","operation":"Apply","fieldsV1":{"f:data":{}}}]'
FAILED = json.dumps({"status": {"conditions": [{"type": "Failed", "status": "True"}]}})


def test_a_job_that_failed_is_in_the_record_so_it_goes_with_its_add_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = charts.hook("before", "pre-install").encode()
    monkeypatch.setattr(steps, "artefact", lambda _: text)
    known = msgspec.structs.replace(addon(), name="jobs")
    one = DesiredAddon(chosen=ChosenAddon(addon=known), content="0" * 32)
    kubectl = KubectlDouble({"api-resources": KINDS, "get job": FAILED})
    spec = write(tmp_path)
    spec.write_text(spec.read_text().replace("[widgets]", "[]"), encoding="utf-8")
    step = AddonsStep(kubectl, facts_of(spec, *NEEDED), (), silent)
    (stopped,) = step.bring(AddonChanges(added=("jobs",), wanted=(one,)))
    assert stopped.code == "GC1068"
    applied = [json.loads(text)["items"][0] for text in kubectl.given if '"items"' in text]
    (record,) = (each for each in applied if each["kind"] == "ConfigMap")
    objects = json.loads(record["data"]["objects"])
    assert objects[0][:4] == ["batch", "Job", "widgets-system", "before"]


def test_only_what_drifted_is_applied_and_as_it_was_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "artefact", lambda _: pytest.fail("nothing is fetched for it"))
    spec = write(tmp_path)
    spec.write_text(spec.read_text().replace("[widgets]", "[]"), encoding="utf-8")
    one = DesiredAddon(chosen=ChosenAddon(addon=addon()), content="0" * 32)
    maps = [new("v1", "ConfigMap", n, namespace="w", data={"made": n}) for n in ("a", "b", "c")]
    applied = applied_of("widgets", "lab", one.content, maps)
    kubectl = KubectlDouble({
        "api-resources": KINDS,
        "get secret gcluster-addon-widgets": json.dumps(applied),
        "get configmaps": row("v1", "ConfigMap", "w", "b", "widgets", WRITERS),
    })  # fmt: skip
    keys = [key_of(each) for each in maps]
    record = Record(
        addon="widgets",
        version="1.0.0",
        content=one.content,
        applied=one.content,
        installed=True,
        kinds=("configmaps",),
        objects=tuple(Placed(*key, fields="old") for key in keys),
    )
    records = {"widgets": record}
    existing = AddonChanges(taken={"widgets": (keys[1],)}, wanted=(one,), records=records)
    step = AddonsStep(kubectl, facts_of(spec, *NEEDED), (), silent)
    assert step.bring(existing) == ()
    put_back, written = [json.loads(text)["items"] for text in kubectl.given if text]
    assert put_back == [maps[1]]
    fields = [placed[4] for placed in json.loads(written[0]["data"]["objects"])]
    assert fields == ["old", fields_of(WRITERS), "old"]


def test_more_than_a_secret_holds_is_refused() -> None:
    noise = random.Random(1).randbytes(800_000).hex()  # noqa: S311  # the same each time
    large = new("v1", "ConfigMap", "a", namespace="w", data={"noise": noise})
    applied_of("widgets", "lab", "", [large])
    with pytest.raises(AddonStopped) as stopped:
        applied_of("widgets", "lab", "", [large, large | {"data": {"noise": noise[::-1]}}])
    assert stopped.value.diagnostic.code == "GC1062"
