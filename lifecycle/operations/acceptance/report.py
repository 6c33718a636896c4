"""The report of an acceptance: what was found, per test and per node, and its signature."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from ....schemas.derived.hostlist import expand, fold
from ....schemas.structure.decoding import decode_json
from ...secrets.vault import SecretVault
from ..gitops.pull.bundle import signers, signing_key, ssh_signature
from .facts.counters import BER, Counters, Growth, growth
from .facts.inventory import NodeParts, differing_firmware, shared_serials
from .judge import Finding, Gap, Judged, TestSummary
from .record import Exclusion, Plan

FORMAT = "gcluster/acceptance/v1"
NAMESPACE = "gcluster-acceptance"
"""What the signature is for (ssh-keygen(1))."""
KEY_SECRET = "acceptance-key"  # noqa: S105  # the secret's name
_SOME = 20


class NodeCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """The acceptance's result for one node."""

    node: str
    verdict: Literal["pass", "fail", "incomplete", "excluded"]
    machine: str
    tests: dict[str, str]
    """Test -> pass, fail, missing, or why it was not tested."""
    findings: tuple[str, ...]
    parts: dict[str, dict[str, str]]
    """What it is made of, with serial numbers and firmware."""
    simulated: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One acceptance."""

    format: str
    cluster: str
    cluster_id: str
    number: int
    verdict: Literal["pass", "fail", "incomplete"]
    not_tested: tuple[str, ...]
    """Notes that precede the verdict: tests without a result, and why."""
    simulated: tuple[str, ...]
    """What was measured on simulated hardware."""
    plan: Plan
    ended: str
    nodes: str
    exclusions: tuple[Exclusion, ...]
    account: str
    tests: tuple[TestSummary, ...]
    findings: tuple[Finding, ...]
    ports: dict[str, Growth]
    """Node -> what its ports' counters grew by."""
    ports_note: str
    certificates: tuple[NodeCertificate, ...]
    compared_with: int | None
    """Number of the acceptance that this one is compared with; None: there is none before."""


def compose(
    *,
    cluster: str,
    cluster_id: str,
    plan: Plan,
    ended: str,
    machines: Mapping[str, str],
    simulated: Mapping[str, tuple[str, ...]],
    judged: Judged,
    parts: Mapping[str, NodeParts],
    counters: tuple[Counters | None, Counters | None],
    compared_with: int | None,
) -> Report:
    """Put the report together.

    Args:
        cluster: its name.
        cluster_id: of its state.
        plan: what was to be tested.
        ended: when, UTC.
        machines: node -> machine type, of all compute nodes, excluded ones too.
        simulated: text of what is simulated -> the nodes.
        judged: the tests.
        parts: node -> its parts.
        counters: of the ports, before and after.
        compared_with: the acceptance before.
    """
    out = {name for one in plan.exclusions for name in expand(one.nodes)}
    ports, note = _ports(*counters)
    down = {n for test in judged.tests if test.name == "drill_link" for n in test.tested}
    judged_ports = {node: grown for node, grown in ports.items() if node not in down}
    findings = [*judged.findings, *_of_ports(judged_ports), *_of_parts(parts, machines, out)]
    untested = [
        f"{test.name}: {why} ({_few(targets)})"
        for test in judged.tests
        for why, targets in _grouped(test.not_tested).items()
    ]
    if down:
        untested.append(f"counters of ports: a rail was taken down on purpose ({fold(down)})")
    if note:
        untested.append(f"counters of ports: {note}")
    tested = any(test.tested for test in judged.tests)
    incomplete = not tested or any(test.missing for test in judged.tests)
    failed = any(finding.level == "fail" for finding in findings)
    return Report(
        format=FORMAT,
        cluster=cluster,
        cluster_id=cluster_id,
        number=plan.number,
        verdict="incomplete" if incomplete else "fail" if failed else "pass",
        not_tested=tuple(untested),
        simulated=tuple(f"{what} ({fold(nodes)})" for what, nodes in simulated.items()),
        plan=plan,
        ended=ended,
        nodes=fold(name for name in machines if name not in out),
        exclusions=plan.exclusions,
        account=plan.account,
        tests=judged.tests,
        findings=tuple(findings),
        ports=ports,
        ports_note=note,
        certificates=tuple(
            _certificate(name, machine, judged, findings, parts, simulated, excluded=name in out)
            for name, machine in machines.items()
        ),
        compared_with=compared_with,
    )


def _ports(before: Counters | None, after: Counters | None) -> tuple[dict[str, Growth], str]:
    if before is None or after is None:
        return {}, "they were not read"
    grown = {
        node: growth(before.nodes[node], counts)
        for node, counts in after.nodes.items()
        if node in before.nodes
    }
    silent = sorted(before.silent.keys() | after.silent.keys())
    return grown, f"{fold(silent)} gave no answer" if silent else ""


def _of_ports(ports: Mapping[str, Growth]) -> Iterable[Finding]:
    for node, grown in ports.items():
        if grown.errors:
            grown_errors = ", ".join(
                f"{name} +{count}" for name, count in sorted(grown.errors.items())
            )
            yield Finding(
                level="fail", test="counters", nodes=(node,), text=f"{node}: {grown_errors}"
            )
        for port, ber in grown.ber.items():
            if ber > BER:
                text = f"{node} {port}: {ber:.1e} symbol errors a bit, at most {BER:g}"
                yield Finding(level="fail", test="counters", nodes=(node,), text=text)


def _of_parts(
    parts: Mapping[str, NodeParts], machines: Mapping[str, str], out: set[str]
) -> Iterable[Finding]:
    kinds = sorted(set(machines.values()))
    alike = [[n for n, m in machines.items() if m == kind and n not in out] for kind in kinds]
    for text, nodes in differing_firmware(parts, alike):
        yield Finding(level="fail", test="inventory", nodes=nodes, text=text)
    for text in shared_serials(parts):
        yield Finding(level="remark", test="inventory", nodes=(), text=text)
    silent = [name for name, one in parts.items() if one.silent]
    if silent:
        text = f"{fold(silent)} didn't say what they are made of: {parts[silent[0]].silent}"
        yield Finding(level="fail", test="inventory", nodes=tuple(silent), text=text)


def _certificate(  # noqa: PLR0917  # one node with all that is known of it
    node: str,
    machine: str,
    judged: Judged,
    findings: list[Finding],
    parts: Mapping[str, NodeParts],
    simulated: Mapping[str, tuple[str, ...]],
    *,
    excluded: bool,
) -> NodeCertificate:
    against = [f for f in findings if node in f.nodes]
    failed = {f.test for f in against if f.level == "fail"}
    tests = {test.name: _of_node(test, node, failed) for test in judged.tests}
    missing = "missing" in tests.values() or not {"pass", "fail"} & set(tests.values())
    verdict: Literal["pass", "fail", "incomplete", "excluded"] = (
        "excluded" if excluded else "fail" if failed else "incomplete" if missing else "pass"
    )
    return NodeCertificate(
        node=node,
        verdict=verdict,
        machine=machine,
        tests={} if excluded else tests,
        findings=tuple(f"{f.test}: {f.text}" for f in against),
        parts=parts.get(node, NodeParts()).parts,
        simulated="; ".join(what for what, nodes in simulated.items() if node in nodes),
    )


def _of_node(test: TestSummary, node: str, failed: set[str]) -> str:
    if test.name in failed:
        return "fail"
    if any(node in expand(gap.nodes) for gap in test.missing.values()):
        return "missing"
    if any(node in expand(nodes) for nodes in test.tested.values()):
        return "pass"
    gaps = (gap.why for gap in test.not_tested.values() if node in expand(gap.nodes))
    return f"not tested: {next(gaps, 'it takes several nodes')}"


def _grouped(gaps: Mapping[str, Gap]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for target, gap in gaps.items():
        found.setdefault(gap.why, []).append(target)
    return found


def _few(targets: list[str]) -> str:
    more = f" and {len(targets) - _SOME} more" if len(targets) > _SOME else ""
    return ", ".join(targets[:_SOME]) + more


def encode(report: Report) -> bytes:
    """Return the bytes that are stored and signed."""
    return msgspec.json.format(msgspec.json.encode(report))


def decode(content: bytes) -> Report:
    """Return a report as it was stored; raises as `decode_json` does."""
    return decode_json(content, Report)


def values_of(report: Report) -> dict[tuple[str, str, str, str], float]:
    """Return (test, metric, target, part) -> value, for the comparison of a later one."""
    return {
        (test.name, metric.metric, one.target, one.part): one.value
        for test in report.tests
        for metric in test.metrics
        for one in metric.series
    }


def digest(content: bytes) -> str:
    """Return the SHA-256 of a report's bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


def sign(vault: SecretVault, content: bytes) -> str:
    """Return the signature of a report.

    The key is the cluster's own, made at its first use. `ssh-keygen -Y verify` needs no gcluster.

    Raises:
        LifecycleError: the key can't be read, or ssh-keygen is missing (GC922).
    """
    vault.ensure(KEY_SECRET, signing_key)
    with vault.materialise([KEY_SECRET]) as files:
        return ssh_signature(content.decode(), files[KEY_SECRET], NAMESPACE)


def allowed_signers(vault: SecretVault, cluster: str) -> str:
    """Return the file by which others verify a report: who may have signed, and by which key."""
    return signers(vault.reveal(KEY_SECRET), signer(cluster), NAMESPACE).decode()


def signer(cluster: str) -> str:
    """Return who signs, as ssh-keygen's -I takes it."""
    return f"acceptance@{cluster}"
