"""`up` follows nodes that converge themselves until each has said how it ended, or is given up."""

from __future__ import annotations

import base64
import gzip
import itertools
import json

import msgspec

from gcluster.inventory.hosts import Host, SshTarget
from gcluster.lifecycle.nodes.ssh import Unreachable
from gcluster.lifecycle.operations.gitops.pull.follow import SILENT_S, Ask, Follow, Followed
from gcluster.lifecycle.operations.gitops.pull.reports import Report, Reports, Stopped, parse
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

SPEC = """
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: local}}
pools:
  head: {site: here, role: controller}
  gpu: {site: here, machine: sim.h100x8, count: 2, update: {drain_timeout: 60s}}
scheduler: {type: slurm}
"""


def spec() -> ClusterSpec:
    found = load_text(SPEC).spec
    assert found is not None
    return found


def host(name: str) -> Host:
    return Host(
        name=name, site="here", pool="gpu", role="compute", machine=None, ssh=SshTarget(user="root")
    )


def report(node: str, state: str, serial: int = 7, received: int = 100, reason: str = "") -> Report:
    return Report(
        node=node, pool="gpu", state=state, serial=serial, received=received, reason=reason
    )


def followed(*looks: Reports | Unreachable) -> Followed:
    """Follow two nodes through these looks, the last of them for ever; a look takes ten seconds."""
    seen = itertools.chain(looks, itertools.repeat(looks[-1]))
    clock = itertools.count(0, 10)
    ask = Ask(observe=lambda: next(seen), now=lambda: next(clock), sleep=lambda _: None)
    hosts = {name: host(name) for name in ("gpu001", "gpu002")}
    return Follow(hosts, spec(), 7, 100, ask, lambda _: None).through()


def both(first: Report, second: Report, **stopped: Stopped) -> Reports:
    return Reports(now=101, nodes={"gpu001": first, "gpu002": second}, stopped=stopped)


def test_it_ends_when_all_have_converged_on_what_was_published() -> None:
    early = both(report("gpu001", "converged", serial=6), report("gpu002", "converging"))
    late = both(report("gpu001", "converged"), report("gpu002", "converged"))
    assert followed(early, late) == Followed(failures={}, held={})


def test_a_failed_node_is_named_with_its_reason() -> None:
    found = followed(
        both(report("gpu001", "failed", reason="no disk"), report("gpu002", "converged"))
    )
    assert {name: f.message for name, f in found.failures.items()} == {"gpu001": "no disk"}


def test_a_node_that_refuses_what_was_published_is_named() -> None:
    refused = report("gpu001", "refused", serial=6, reason="not signed by this cluster")
    found = followed(both(refused, report("gpu002", "converged")))
    assert found.failures["gpu001"].message == "not signed by this cluster"


def test_an_old_refusal_does_not_count_and_silence_ends() -> None:
    old = report("gpu001", "refused", serial=6, received=99)
    found = followed(both(old, report("gpu002", "converged")))
    assert "never reported" in found.failures["gpu001"].message
    assert SILENT_S > 0


def test_a_node_whose_job_continues_is_held_and_not_failed() -> None:
    waiting = report("gpu001", "waiting", reason="jobs run here: train")
    found = followed(both(waiting, report("gpu002", "converged")))
    assert found.failures == {}
    assert "jobs run here: train" in found.held["gpu001"]


def test_after_too_many_failures_the_waiting_are_held_at_once() -> None:
    stopped = Stopped(pool="gpu", serial=7, failed=("gpu002",))
    found = followed(both(report("gpu001", "waiting"), report("gpu002", "failed"), gpu=stopped))
    assert found.held == {"gpu001": "stopped: gpu002 failed"}
    assert set(found.failures) == {"gpu002"}


def test_while_slurm_refuses_what_the_collector_queries_waiting_nodes_report_it() -> None:
    requested = both(report("gpu001", "waiting"), report("gpu002", "converged"))
    found = followed(msgspec.structs.replace(requested, silent="invalid partition"))
    assert found.held["gpu001"].startswith("Slurm is not queried for it: invalid partition")


def test_a_controller_that_is_away_is_reported() -> None:
    found = followed(Unreachable(reason="no route to host"))
    assert "no route to host" in found.failures["gpu001"].message


def answer(*lines: str) -> str:
    return base64.b64encode(gzip.compress("\n".join([*lines, ""]).encode())).decode()


def test_reports_are_read_whole_or_not_at_all() -> None:
    line = json.dumps({"node": "a", "pool": "gpu", "state": "away", "serial": 1, "received": 5})
    stopped, silent = '{"pool": "gpu", "serial": 1}', '{"reason": "invalid partition"}'
    read = parse(answer("9", line, "not json", "---", stopped, "---", silent))
    assert isinstance(read, Reports)
    assert (read.now, set(read.nodes), set(read.stopped)) == (9, {"a"}, {"gpu"})
    assert read.silent == "invalid partition"
    assert isinstance(parse(answer("9", line, "---", "---")[:-8]), Unreachable)


def test_a_report_counts_only_for_the_machine_that_made_it_and_while_it_is_recent() -> None:
    reported = Report(
        node="gpu001",
        pool="gpu",
        state="converged",
        serial=1,
        received=100,
        host_key="ssh-ed25519 A",
    )
    mine = Host(
        name="gpu001", site="here", pool="gpu", role="compute", machine=None,
        ssh=SshTarget(user="root", host_keys=("ssh-ed25519 A",)),
    )  # fmt: skip
    other = Host(
        name="gpu001", site="here", pool="gpu", role="compute", machine=None,
        ssh=SshTarget(user="root", host_keys=("ssh-ed25519 B",)),
    )  # fmt: skip
    recent = Reports(now=150, nodes={"gpu001": reported}, stopped={})
    old = Reports(now=900, nodes={"gpu001": reported}, stopped={})
    assert [r.fresh(h) is reported for r, h in ((recent, mine), (recent, other), (old, mine))] == [
        True, False, False,
    ]  # fmt: skip
