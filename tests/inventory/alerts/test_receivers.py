"""Alerts reach the receivers of the spec, once, and not where another alert gives the cause.

Alertmanager is the real one, with the role's own configuration; the mail server and the webhook are
sinks of the tests' own (`sinks.py`).
"""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from gcluster.inventory.alerts import alert_rules, alertmanager_config, inhibitions, owners_of_pods
from gcluster.lifecycle.secrets.certificates import certificate_of, issue, new_authority
from gcluster.schemas.spec import Account, ClusterSpec, KubernetesScheduler, User
from gcluster.schemas.spec.cluster import Alerts, Monitoring, WasteAlert
from gcluster.schemas.spec.units import Percent

sys.path.insert(0, str(Path(__file__).parent))
from sinks import MailSink, WebhookSink, awaited, serving
from tests.free_port import free_port

sys.path.pop(0)
from .written import configuration, everyone, mail, plain_mail

PASSWORD = "plover-mail-2207"  # noqa: S105  # of the sink


@contextmanager
def alertmanager(folder: Path, config: str) -> Iterator[str]:
    """Run the real one on a loopback address; yields its URL."""
    program = shutil.which("prometheus-alertmanager")
    assert program is not None, "make test-alerts brings it"
    # Quick groups: only how long Alertmanager waits for more of them is the tests' own.
    quick = yaml.safe_load(config)
    quick["route"] |= {"group_wait": "1s", "group_interval": "1s"}
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(quick), encoding="utf-8")
    address = f"127.0.0.1:{free_port()}"
    arguments = [
        f"--config.file={folder}/alertmanager.yml",
        f"--storage.path={folder}/data",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log)
    try:
        ready = f"http://{address}/-/ready"
        awaited("Alertmanager answers", lambda: _answers(ready) or process.poll() is not None)
        assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310  # loopback
            return answer.status == 200  # type: ignore[no-any-return]
    except OSError:
        return False


def _failed(url: str) -> float:
    """Return how many attempts to send mail have failed, by Alertmanager's own count."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=5) as answer:  # noqa: S310  # loopback
        lines = answer.read().decode().splitlines()
    name = 'alertmanager_notification_requests_failed_total{integration="email"'
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def fire(url: str, name: str, *, over: bool = False, summary: str = "", **labels: str) -> None:
    """Send what Prometheus sends of a rule that fires, or has ended."""
    now = datetime.now(UTC)
    rule = alert_rules()[name]
    ends = now - timedelta(seconds=1) if over else now + timedelta(minutes=5)
    alert = {
        "labels": {"alertname": name, "severity": rule.severity, "cluster": "demo", **labels},
        "annotations": {"summary": summary or name, "runbook": f"gcluster explain {name}"},
        "startsAt": (now - timedelta(minutes=1) if over else now).isoformat(),
        "endsAt": ends.isoformat(),
    }
    request = urllib.request.Request(  # noqa: S310  # loopback
        f"{url}/api/v2/alerts", json.dumps([alert]).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310  # loopback
        assert answer.status == 200


def names(posted: list[dict[str, Any]]) -> list[str]:
    return [alert["labels"]["alertname"] for one in posted for alert in one["alerts"]]


@pytest.mark.monitoring
@pytest.mark.parametrize("which", ["none", "mail", "webhook", "slack", "all"])
def test_amtool_takes_each_configuration(which: str, tmp_path: Path) -> None:
    address = "https://hooks.example.edu/services/T0/B0/plover"
    secrets = {"mail": 'a "quoted" {{ word }}: #', "webhook": address, "slack": address}
    receivers = everyone()
    chosen = [name for name in receivers if which in {name, "all"}]
    (tmp_path / "mail-ca.pem").write_bytes(certificate_of(new_authority("mail")))
    written = tmp_path / "alertmanager.yml"
    text = configuration(
        tmp_path,
        {name: receivers[name] for name in chosen},
        **{name: secrets[name] for name in chosen},
    )
    written.write_text(text, encoding="utf-8")
    amtool = shutil.which("amtool")
    assert amtool is not None, "make test-alerts brings amtool"

    done = subprocess.run(
        [amtool, "check-config", str(written)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    document = yaml.safe_load(written.read_text(encoding="utf-8"))
    of = {"none": set(), "all": set(receivers)}.get(which, {which})
    assert {one["name"] for one in document["receivers"]} == {"page", *of}
    assert {route["receiver"] for route in document["route"].get("routes", [])} == of
    if "mail" in of:
        [*_, by_mail] = [one for one in document["receivers"] if one["name"] == "mail"]
        found = {config["auth_password"] for config in by_mail["email_configs"]}
        assert found == {'a "quoted" {{ word }}: #'}


@pytest.mark.monitoring
def test_a_node_that_is_down_is_mailed_once_over_tls_and_when_it_is_back(tmp_path: Path) -> None:
    authority = new_authority("mail")
    (tmp_path / "mail-ca.pem").write_bytes(certificate_of(authority))
    (tmp_path / "server.pem").write_bytes(issue(authority, ["localhost"], ["server"]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    sink = MailSink(context, ("alerts", PASSWORD))
    config = configuration(tmp_path, {"mail": mail(sink.address)}, mail=PASSWORD + "\n")
    hostile = "<script>alert(1)</script>\r\nBcc: mallory@example.edu"

    with serving(sink), alertmanager(tmp_path, config) as url:
        fire(url, "NodeDown", instance="gpu001", summary=hostile)
        fire(url, "NodeDown", instance="gpu002", summary="gpu002 doesn't answer")
        awaited("both are mailed", lambda: len(sink.mails) >= 2)
        for instance in ("gpu001", "gpu002"):
            fire(url, "NodeDown", over=True, instance=instance)
        awaited("the end is mailed", lambda: len(sink.mails) >= 4)

    assert sorted(sink.recipients) == ["night@example.edu"] * 2 + ["ops@example.edu"] * 2
    first, last = sink.mails[0], sink.mails[-1]
    assert (first["From"], first["Subject"]) == ("gcluster@example.edu", "[demo] NodeDown: 2 now")
    assert last["Subject"] == "[demo] NodeDown: over"
    assert "Bcc" not in first
    assert [part.get_content_type() for part in first.walk()][-1] == "text/plain"
    body = first.get_body(("plain",))
    assert body is not None
    text = body.get_content()
    assert "critical: gpu002 doesn't answer" in text
    assert "what to do: gcluster explain NodeDown" in text
    assert PASSWORD not in (tmp_path / "log").read_text(encoding="utf-8")
    assert {line.split(" ")[0] for line in sink.said_in_the_clear} <= {"EHLO", "STARTTLS"}


@pytest.mark.monitoring
@pytest.mark.parametrize("sort", ["no TLS at all", "a stranger's certificate"])
def test_mail_goes_to_no_server_that_can_t_prove_itself(sort: str, tmp_path: Path) -> None:
    (tmp_path / "mail-ca.pem").write_bytes(certificate_of(new_authority("mail")))
    context = None
    if sort != "no TLS at all":
        (tmp_path / "s.pem").write_bytes(issue(new_authority("other"), ["localhost"], ["server"]))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "s.pem")
    sink = MailSink(context, ("alerts", PASSWORD))
    config = configuration(tmp_path, {"mail": mail(sink.address)}, mail=PASSWORD)

    with serving(sink), alertmanager(tmp_path, config) as url:
        fire(url, "NodeDown", instance="gpu001")
        log = tmp_path / "log"
        awaited(
            "it is refused",
            lambda: (
                "Notify for alerts failed" in log.read_text()
                or "notify retry canceled" in log.read_text()
                or "Notify attempt failed" in log.read_text()
            ),
        )

    assert sink.mails == []
    assert not any(line.startswith("AUTH") for line in sink.said_in_the_clear)


@pytest.mark.monitoring
@pytest.mark.parametrize(
    ("users", "ada"),
    [
        (
            "users: [{name: ada, uid: 2001, mail: ada@example.org}, {name: bob, uid: 2002}]\n",
            "ada@example.org",
        ),
        ("users: {source: sssd, ldap: 'ldaps://dir.example.edu'}\n", "ada@example.edu"),
    ],
)
def test_waste_is_mailed_to_the_owner_of_the_job_and_other_alerts_are_not(
    users: str, ada: str, tmp_path: Path
) -> None:
    sink = MailSink(None, None)
    config = configuration(tmp_path, {"mail": plain_mail(sink.address)}, users)

    with serving(sink), alertmanager(tmp_path, config) as url:
        for user, job in (("ada", "7"), ("bob", "8"), ("x, mallory@example.org", "9")):
            fire(url, "GpusWasted", user=user, account="nlp", hpc_job=job, summary=f"job {job}")
        fire(url, "GpuPcieDowngraded", user="ada", instance="gpu001")
        awaited("both owners are mailed", lambda: len(sink.mails) >= 2)
        fire(url, "NodeDown", instance="gpu002")
        awaited("the team is mailed what is critical", lambda: len(sink.mails) >= 3)

    assert sorted(sink.recipients) == sorted([ada, "bob@example.edu", "ops@example.edu"])
    [own] = [one for one in sink.mails if one["To"] == ada]
    body = own.get_body(("plain",))
    assert body is not None
    assert "job 7" in body.get_content()
    assert "scancel 7" in body.get_content()
    assert "job 8" not in body.get_content()


@pytest.mark.monitoring
def test_waste_of_pods_is_mailed_to_its_account_and_a_label_chooses_among_its_members(
    tmp_path: Path,
) -> None:
    sink = MailSink(None, None)
    alerts = msgspec.convert({"mail": plain_mail(sink.address)}, Alerts)
    users = [
        User(name=name, uid=uid, mail=f"{name}@example.org")
        for name, uid in (("ada", 1), ("eve", 2))
    ]
    waste = WasteAlert(below=Percent.parse("40%"), to_owner=True, mail_domain="example.edu")
    spec = ClusterSpec(
        api_version="gcluster/v1",
        name="campus",
        sites={},
        pools={},
        users=users,
        scheduler=KubernetesScheduler(),
        monitoring=Monitoring(prometheus=True, alerts=alerts, waste_alert=waste),
    )
    accounts = {
        "nlp": Account(users=["ada", "bob"]),
        "idp": Account(),
        "bio": Account(users=["eve"]),
    }
    owners = owners_of_pods(spec, accounts)
    assert [one.name for one in owners] == ["owner-nlp", "owner-bio"]
    config = yaml.safe_dump(alertmanager_config(alerts, str(tmp_path), "campus", owners))
    job = {"owner_kind": "Job"}

    with serving(sink), alertmanager(tmp_path, config) as url:
        fire(url, "KubeGpusWasted", namespace="nlp", owner_name="a", user="ada", summary="a", **job)
        awaited("ada is mailed", lambda: len(sink.mails) >= 1)
        fire(url, "KubeGpusWasted", namespace="nlp", owner_name="b", summary="b", **job)
        awaited("all of nlp are mailed", lambda: len(sink.mails) >= 2)
        # who isn't a member is never mailed, and an account without members has no receiver
        fire(url, "KubeGpusWasted", namespace="nlp", owner_name="c", user="eve", summary="c", **job)
        awaited("all of nlp are mailed again", lambda: len(sink.mails) >= 3)
        fire(url, "KubeGpusWasted", namespace="idp", owner_name="d", user="eve", summary="d", **job)
        fire(url, "KubeNodeDown", instance="gpu001", namespace="bio")
        awaited("the team is mailed what is critical", lambda: len(sink.mails) >= 4)

    found = [(one["To"], one.get_body(("plain",)).get_content()) for one in sink.mails]  # type: ignore[union-attr]
    both = "ada@example.org, bob@example.edu"
    assert [to for to, _ in found] == ["ada@example.org", both, both, "ops@example.edu"]
    assert "kubectl --namespace nlp delete Job/a" in found[0][1]
    assert "Job/b" not in found[0][1]
    assert "eve@example.org" not in sink.recipients


@pytest.mark.monitoring
def test_alerts_go_by_severity_and_only_what_shows_why(tmp_path: Path) -> None:
    sink = WebhookSink()
    receivers = {name: everyone()[name] for name in ("webhook", "slack")}
    del receivers["slack"]["channel"]
    config = configuration(tmp_path, receivers, webhook=sink.url("/pager"), slack=sink.url("/chat"))

    with serving(sink), alertmanager(tmp_path, config) as url:
        # gpu001 is drained for a change of ours, gpu002 is down, gpu003 has a full disk.
        fire(url, "NodeOutOfService", instance="gpu001")
        fire(url, "NodeDown", instance="gpu002", summary="<!channel> & co")
        fire(url, "DiskFull", instance="gpu003", mountpoint="/var")
        fire(url, "DiskFilling", instance="gpu003", mountpoint="/var")
        awaited("the pager has two", lambda: len(names(sink.at("/pager"))) >= 2)
        for instance in ("gpu001", "gpu002"):
            for name in ("LinkDown", "InfinibandDown", "UnitFailed", "MemoryErrors"):
                fire(url, name, instance=instance)
        fire(url, "NodeUnfit", instance="gpu001", reason="gcluster-health: xid: 79")
        fire(url, "LinkDown", instance="gpu004", summary="gpu004 has lost its link")
        awaited("the chat has the link", lambda: "gpu004" in json.dumps(sink.at("/chat")))
        awaited("and who is unfit", lambda: "NodeUnfit" in json.dumps(sink.at("/chat")))

    assert sorted(names(sink.at("/pager"))) == ["DiskFull", "NodeDown"]
    chat = [one["attachments"][0] for one in sink.at("/chat")]
    titles = sorted(one["title"] for one in chat)
    assert titles == [
        "[demo] DiskFull: 1 now",
        "[demo] LinkDown: 1 now",
        "[demo] NodeDown: 1 now",
        "[demo] NodeUnfit: 1 now",
    ]
    [down] = [one["text"] for one in chat if "NodeDown" in one["title"]]
    assert down.strip() == "critical: &lt;!channel&gt; &amp; co (gcluster explain NodeDown)"


def test_inhibitions_name_alerts_that_there_are() -> None:
    named = set()
    for rule in (*inhibitions(), *inhibitions("kubernetes")):
        for matcher in rule["source_matchers"] + rule["target_matchers"]:
            named |= set(matcher.partition('"')[2].strip('"').split("|"))

    assert named <= alert_rules().keys()
    assert {rule.name for rule in alert_rules().values() if rule.severity == "none"} == {
        "NodeOutOfService", "KubeNodeOutOfService",
    }  # fmt: skip
