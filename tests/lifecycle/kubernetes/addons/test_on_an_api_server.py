"""Add-ons on a real API server, rendered by a real helm: from the publisher to what is pruned.

The charts are small ones of ours and their publisher is a double. There are no nodes: jobs of hooks
get their end from a double of a kubelet, and workloads of no replicas are there at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lifecycle.managed.eks_double import until
from tests.lifecycle.publisher import Publisher, published

from gcluster.lifecycle.cluster.progress import silent
from gcluster.lifecycle.kubernetes.addons import changes as together
from gcluster.lifecycle.kubernetes.addons.changes import AddonChanges
from gcluster.lifecycle.kubernetes.addons.ownership import built_in_groups, read_api_resources
from gcluster.lifecycle.kubernetes.addons.prune import prune
from gcluster.lifecycle.kubernetes.addons.ready import fetch_and_render
from gcluster.lifecycle.kubernetes.addons.step import AddonsStep
from gcluster.lifecycle.kubernetes.objects import DesiredObjects, ObjectKey
from gcluster.lifecycle.operations.rolling.roll import Clock
from gcluster.schemas.diagnostics import Diagnostic

from . import charts
from .api import Kubelet, LocalKubectl
from .lab import NEEDED, entry, facts_of, write

pytestmark = pytest.mark.kubernetes_api
NS = "widgets-system"
MADE = (("secret", "made"), ("configmap", "trusts"))


class Lab:
    """A cluster's API, and what `up` does about add-ons there."""

    def __init__(self, server: Any, folder: Path, publisher: Publisher) -> None:
        """Take the server, a folder for the spec, and who publishes."""
        self.kubectl = LocalKubectl(server, folder)
        self.kubelet = Kubelet(server)
        self.publisher = publisher
        self.folder = folder

    def desired(self, *addons: dict[str, Any]) -> DesiredObjects:
        """Return what the spec wants of these add-ons, those that it needs left out."""
        known = addons or (entry(self.publisher, "widgets", charts.full()),)
        gone = () if addons else ("widgets",)
        facts = facts_of(write(self.folder, *known), *NEEDED, *gone)
        return DesiredObjects(facts=facts, objects={}, nodes={})

    def look(self, wanted: DesiredObjects, *, thorough: bool = True) -> AddonChanges:
        """Return the state of add-ons."""
        return together.observe_addons(self.kubectl, wanted.facts, thorough=thorough)[0]

    def up(self, wanted: DesiredObjects, *, limit_s: float = 60) -> tuple[Diagnostic, ...]:
        """Bring and remove add-ons as `up` does."""
        existing = self.look(wanted)
        fetch_and_render(wanted, existing, silent)
        clock = Clock(lambda: self.kubelet.now, self.kubelet.sleep)
        step = AddonsStep(self.kubectl, wanted.facts, (), silent, clock=clock, limit_s=limit_s)
        answer = step.bring(existing)
        return answer if any(d.is_error for d in answer) else (*answer, *step.remove(existing))

    def get(self, *what: str) -> Any:
        """Return an object, or None."""
        done = self.kubectl.run("get", *what, "--output=json", "--ignore-not-found")
        return json.loads(done.stdout) if done.stdout.strip() else None


@pytest.fixture
def lab(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """Give a cluster in which no add-on is left over."""
    own = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(own))
    with published() as publisher:
        found = Lab(server, tmp_path, publisher)
        yield found
        found.kubelet.phase = "Succeeded"
        found.up(found.desired())


def test_all_kinds_that_the_server_has_by_itself_are_known_to_be_built_in(lab: Lab) -> None:
    crds = (lab.get("customresourcedefinitions") or {"items": []})["items"]
    brought = {crd["spec"]["group"] for crd in crds}
    groups = {group for group, _ in read_api_resources(lab.kubectl).kinds}
    assert groups - brought <= built_in_groups()


def test_a_chart_comes_whole_with_its_kinds_its_hooks_and_our_labels(lab: Lab) -> None:
    wanted = lab.desired(entry(lab.publisher, "widgets", charts.full()))
    assert lab.look(wanted).lines() == ("add add-on widgets 1.0.0",)
    answer = lab.up(wanted)
    assert [d.code for d in answer if d.is_error] == [], answer
    settings = lab.get("configmap", "settings", f"--namespace={NS}")
    assert settings["data"] == {"colour": "blue", "release": "35"}
    labels = settings["metadata"]["labels"]
    assert (labels["gcluster.local/cluster"], labels["gcluster.local/addon"]) == ("lab", "widgets")
    assert lab.get("widget", "first", f"--namespace={NS}")["spec"] == {"size": 1}
    assert lab.get("role", "reader", "--namespace=kube-system") is not None
    manager = lab.get("deployment", "manager", f"--namespace={NS}")
    assert manager["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm"
    assert lab.kubelet.ran == ["before", "after"]
    assert lab.get("jobs", f"--namespace={NS}") is None


def test_hooks_that_never_run_and_images_at_no_digest_are_named(lab: Lab) -> None:
    result = lab.up(lab.desired(entry(lab.publisher, "widgets", charts.full())))
    answer = {d.code: d.summary for d in result}
    assert answer["GC1063"].endswith("hooks that up never runs: Job/clean (pre-delete)")
    assert "example.org/manager:1" in answer["GC1066"]


def test_a_second_up_finds_nothing_to_do_renders_nothing_and_queries_no_publisher(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = lab.desired(entry(lab.publisher, "widgets", charts.full()))
    lab.up(wanted)
    lab.publisher.calls.clear()
    lab.kubectl.calls.clear()
    monkeypatch.setenv("PATH", "/nowhere")
    assert lab.look(wanted).lines() == ()
    assert lab.up(wanted) == ()
    assert lab.publisher.calls == []
    assert [line for line in lab.kubectl.calls if not line.startswith(("api-res", "get "))] == []


def test_what_a_new_version_has_no_more_is_pruned_and_only_its_hooks_run(lab: Lab) -> None:
    lab.up(lab.desired(entry(lab.publisher, "widgets", charts.full())))
    lab.kubelet.ran.clear()
    newer = charts.full("1.1.0", elsewhere="", settings=charts.SETTINGS.replace("settings", "set"))
    wanted = lab.desired(entry(lab.publisher, "widgets", newer, "1.1.0"))
    assert lab.look(wanted).lines() == ("change add-on widgets: 1.0.0 -> 1.1.0",)
    lab.up(wanted)
    assert lab.get("role", "reader", "--namespace=kube-system") is None
    assert lab.get("configmap", "settings", f"--namespace={NS}") is None
    assert lab.get("configmap", "set", f"--namespace={NS}") is not None
    assert lab.kubelet.ran == ["before"]


def test_what_was_deleted_or_changed_by_hand_is_seen_and_restored_without_hooks(lab: Lab) -> None:
    wanted = lab.desired(entry(lab.publisher, "widgets", charts.full()))
    lab.up(wanted)
    lab.kubelet.ran.clear()
    lab.kubectl.text("delete", "widget", "first", f"--namespace={NS}")
    assert lab.look(wanted).lines() == ("put back of add-on widgets: Widget widgets-system/first",)
    lab.up(wanted)
    assert lab.get("widget", "first", f"--namespace={NS}") is not None
    patch = json.dumps({"data": {"colour": "red"}})
    lab.kubectl.text("patch", "configmap", "settings", f"--namespace={NS}", f"--patch={patch}")
    assert [key.name for key in lab.look(wanted).taken["widgets"]] == ["settings"]
    lab.up(wanted)
    settings = lab.get("configmap", "settings", f"--namespace={NS}")
    assert settings["data"]["colour"] == "blue"
    assert lab.kubelet.ran == []
    assert lab.up(wanted) == ()


def test_one_object_is_put_back_alone_and_what_was_made_by_rendering_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = lab.desired(entry(lab.publisher, "widgets", charts.full(made=charts.MADE)))
    lab.up(wanted)
    where = f"--namespace={NS}"
    kept, trusts = (lab.get(kind, name, where) for kind, name in MADE)
    patch = json.dumps({"data": {"also": "red"}})
    lab.kubectl.text("patch", "configmap", "trusts", where, f"--patch={patch}")
    lab.kubectl.text("delete", "configmap", "settings", where)
    monkeypatch.setenv("PATH", "/nowhere")  # and nothing is rendered for it
    lab.publisher.calls.clear()
    assert lab.up(wanted) == ()
    secret, again = (lab.get(kind, name, where) for kind, name in MADE)
    assert secret["metadata"]["resourceVersion"] == kept["metadata"]["resourceVersion"]
    assert again["data"] == trusts["data"]
    assert lab.get("configmap", "settings", where)["data"]["colour"] == "blue"
    assert lab.look(wanted).pending == ()


def test_kinds_that_went_with_their_objects_are_put_back_before_them(lab: Lab) -> None:
    wanted = lab.desired(entry(lab.publisher, "widgets", charts.full()))
    lab.up(wanted)
    lab.kubectl.text("delete", "customresourcedefinition", "widgets.example.org")
    assert lab.up(wanted) == ()
    assert lab.get("widget", "first", f"--namespace={NS}")["spec"] == {"size": 1}
    assert lab.look(wanted).pending == ()


def test_where_what_was_applied_is_lost_a_plan_reports_that_all_of_it_comes_again(lab: Lab) -> None:
    wanted = lab.desired(entry(lab.publisher, "widgets", charts.full()))
    lab.up(wanted)
    system = "--namespace=gcluster-system"
    lab.kubectl.text("delete", "secret", "gcluster-addon-widgets", system)
    existing = lab.look(wanted)
    assert existing.lines() == ("change add-on widgets: what was applied is lost",)
    assert existing.only_put_back().pending == ()
    lab.up(wanted)
    assert lab.look(wanted).lines() == ()
    patch = json.dumps({"data": {"packed": "eA=="}})
    lab.kubectl.text("patch", "secret", "gcluster-addon-widgets", system, f"--patch={patch}")
    lab.kubectl.text("delete", "configmap", "settings", f"--namespace={NS}")
    (answer,) = lab.up(wanted)
    assert (answer.code, answer.is_error) == ("GC1070", True)
    assert "delete secret gcluster-addon-widgets" in answer.hint
    lab.kubectl.text("delete", "secret", "gcluster-addon-widgets", system)


def test_claims_of_a_set_stay_when_it_goes_though_it_reports_that_they_go_with_it(lab: Lab) -> None:
    labels = {"gcluster.local/cluster": "lab", "gcluster.local/addon": "books"}
    lab.kubectl.text("apply", "--filename=-", stdin=json.dumps(charts.books(labels)))
    where = "--namespace=kube-system"

    def owners() -> str:
        paths = "--output=jsonpath={.metadata.ownerReferences[*].kind}"
        return lab.kubectl.run("get", "pvc", "pages-books-0", where, paths).stdout

    until(lambda: owners() == "StatefulSet", "the set does not own its claim")
    key = ObjectKey("apps", "StatefulSet", "kube-system", "books")
    done = prune(lab.kubectl, "lab", "books", [key], read_api_resources(lab.kubectl))
    assert [kept.words for kept in done.data] == ["kube-system/pages-books-0"]
    until(lambda: lab.get("statefulset", "books", where) is None, "the set stays")
    claim = lab.get("pvc", "pages-books-0", where)
    assert "deletionTimestamp" not in claim["metadata"]
    lab.kubectl.text("delete", "pvc", "pages-books-0", where, "--wait=false")


def test_a_run_that_was_cut_off_is_gone_on_with_and_cleaned_up_after(lab: Lab) -> None:
    broken = charts.full("0.9.0", after=charts.hook("after", "post-install"), old=charts.ELSEWHERE)
    lab.kubelet.phase = "Failed"
    (stopped,) = lab.up(lab.desired(entry(lab.publisher, "widgets", broken, "0.9.0")))
    assert (stopped.code, stopped.is_error) == ("GC1068", True)
    assert "hook Job before: BackoffLimitExceeded" in stopped.summary
    lab.kubelet.phase = "Succeeded"
    wanted = lab.desired(entry(lab.publisher, "widgets", charts.full()))
    assert lab.look(wanted).lines() == ("change add-on widgets: 1.0.0, which was cut off",)
    assert not [d for d in lab.up(wanted) if d.is_error]
    assert lab.look(wanted).lines() == ()


def test_a_workload_that_does_not_come_is_named_with_what_the_scheduler_has(lab: Lab) -> None:
    late = charts.full(manager=charts.MANAGER.replace("{{ .Values.replicas }}", "1"))
    answer = lab.up(lab.desired(entry(lab.publisher, "widgets", late)), limit_s=20)
    stopped = answer[-1]
    assert (stopped.code, stopped.is_error) == ("GC1065", True)
    assert "add-on widgets: Deployment widgets-system/manager is not there" in stopped.summary
    assert "no nodes available" in stopped.detail


def test_a_kind_that_nothing_defines_is_named_before_anything_is_applied(lab: Lab) -> None:
    monitor = "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nmetadata: {name: m}\n"
    answer = lab.up(lab.desired(entry(lab.publisher, "widgets", charts.full(monitor=monitor))))
    assert answer[-1].code == "GC1064"
    assert "PodMonitor.monitoring.coreos.com" in answer[-1].summary
    assert lab.get("configmap", "settings", f"--namespace={NS}") is None


def test_what_the_server_refuses_is_reported_with_the_object_and_its_words(lab: Lab) -> None:
    wrong = charts.SETTINGS.replace("\ndata:", "\ndat:")
    answer = lab.up(lab.desired(entry(lab.publisher, "widgets", charts.full(settings=wrong))))
    assert answer[-1].code == "GC1064"
    assert 'unknown field "dat"' in answer[-1].detail


def test_an_add_on_that_goes_takes_all_with_it_but_kinds_that_others_use(lab: Lab) -> None:
    lab.up(lab.desired(entry(lab.publisher, "widgets", charts.full())))
    theirs = {
        "apiVersion": "example.org/v1",
        "kind": "Widget",
        "metadata": {"name": "theirs", "namespace": "default"},
    }
    lab.kubectl.text("apply", "--filename=-", stdin=json.dumps(theirs))
    gone = lab.desired()
    assert lab.look(gone).lines() == ("remove add-on widgets: 5 objects",)
    (answer,) = lab.up(gone)
    assert answer.code == "GC1069"
    assert "CustomResourceDefinition widgets.example.org is kept: 1 objects" in answer.summary
    assert lab.get("deployment", "manager", f"--namespace={NS}") is None
    lab.kubectl.text("delete", "widget", "theirs", "--namespace=default")
    assert lab.up(gone) == ()
    assert lab.get("customresourcedefinition", "widgets.example.org") is None
    assert lab.look(gone).records == {}
    assert lab.get("secrets", "gcluster-addon-widgets", "--namespace=gcluster-system") is None
