"""Kubeconfigs for people; who signs is a double of the API with a real certificate authority."""

from __future__ import annotations

import base64
import json
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gcluster.inventory.hosts import ClusterInventory, Host, SshTarget
from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.kubernetes import access
from gcluster.lifecycle.kubernetes.kubectl import Kubectl
from gcluster.lifecycle.nodes.ssh import SshResult, SshSession
from gcluster.schemas.load import load_text
from gcluster.schemas.spec import ClusterSpec

SPEC = """\
apiVersion: gcluster/v1
name: demo
sites: {here: {provider: simulated}}
pools: {head: {site: here, role: controller}, gpu: {site: here, machine: sim.h100x8, count: 1}}
scheduler: {type: kubernetes, kueue: false, accounts: {nlp: {users: [ada]}, open: {}}}
users: [{name: ada, uid: 2001}]
"""


class SignerDouble(Kubectl):
    """Takes requests, signs what is approved, and keeps the requests."""

    def __init__(self, folder: Path, *, denied: bool = False) -> None:
        """Make the authority."""
        super().__init__(SshSession(folder), [])
        self.denied = denied
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.requests: dict[str, dict[str, Any]] = {}
        self.arguments: list[str] = []

    def run(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> SshResult:
        """Answer as kubectl does."""
        del timeout_s
        self.arguments += arguments
        match arguments[:2]:
            case ("config", "view"):
                return self._result(f"https://head:9 {base64.b64encode(b'authority').decode()}")
            case ("create", _):
                made = json.loads(stdin or "")
                self.requests[made["metadata"]["name"]] = made
            case ("certificate", "approve"):
                made = self.requests[arguments[2]]
                if self.denied:
                    why = {"type": "Denied", "message": "CertificateSubjectRestriction"}
                    made["status"] = {"conditions": [why]}
                else:
                    made["status"] = {"certificate": self._signed(made["spec"])}
            case ("get", "csr"):
                return self._result(json.dumps(self.requests[arguments[2]]))
            case ("delete", "csr"):
                del self.requests[arguments[2]]
        return self._result("")

    def _result(self, text: str) -> SshResult:
        return SshResult(returncode=0, stdout=text, stderr="")

    def _signed(self, spec: dict[str, Any]) -> str:
        request = x509.load_pem_x509_csr(base64.b64decode(spec["request"]))
        now = datetime.now(UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(request.subject)
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubernetes")]))
            .public_key(request.public_key())
            .serial_number(1)
            .not_valid_before(now)
            .not_valid_after(now + timedelta(seconds=spec["expirationSeconds"]))
            .sign(self.key, hashes.SHA256())
        )
        return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


@pytest.fixture
def spec() -> ClusterSpec:
    """Give a cluster with two accounts."""
    loaded = load_text(SPEC)
    assert loaded.spec is not None, loaded.diagnostics
    return loaded.spec


@pytest.fixture
def signer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SignerDouble:
    """Simulate the cluster's API."""
    made = SignerDouble(tmp_path)
    monkeypatch.setattr(access, "kubectl_of", lambda *_: made)
    return made


def grant(spec: ClusterSpec, folder: Path, **options: Any) -> access.Access:
    head = Host(
        name="head",
        pool="head",
        role="controller",
        site="here",
        machine=None,
        address="127.0.0.1",
        ssh=SshTarget(user="root"),
    )
    hosts = ClusterInventory(cluster=spec.name, hosts=(head,))
    return access.grant(spec, hosts, SshSession(folder), folder, **{"user": "ada", **options})


@pytest.mark.parametrize(
    ("account", "subject"), [("nlp", "CN=ada"), ("open", "CN=ada,O=gcluster:open")]
)
def test_the_certificate_names_a_member_or_the_account_and_fits_the_key(
    spec: ClusterSpec, signer: SignerDouble, tmp_path: Path, *, account: str, subject: str
) -> None:
    made = grant(spec, tmp_path, account=account, lifetime_s=3600)
    path = Path(made.path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    config = json.loads(path.read_text())
    user = config["users"][0]["user"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))
    key = serialization.load_pem_private_key(base64.b64decode(user["client-key-data"]), None)
    assert certificate.subject.rfc4514_string() == subject
    assert key.public_key() == certificate.public_key()
    cluster = config["clusters"][0]["cluster"]
    assert (cluster["server"], cluster["tls-server-name"]) == ("https://127.0.0.1:9", "head")
    assert config["contexts"][0]["context"]["namespace"] == account
    assert made.ends is not None
    assert timedelta(minutes=59) < made.ends - datetime.now(UTC) <= timedelta(hours=1)
    assert signer.requests == {}, "the request's object is removed"
    assert user["client-key-data"] not in " ".join(signer.arguments)
    assert not made.reachable


def test_a_tunnel_begins_here_and_ends_at_the_control_plane_that_is_named_as_there(
    spec: ClusterSpec, signer: SignerDouble, tmp_path: Path
) -> None:
    made = grant(spec, tmp_path, tunnel_port=6443)
    cluster = json.loads(Path(made.path).read_text())["clusters"][0]["cluster"]
    assert (cluster["server"], cluster["tls-server-name"]) == ("https://127.0.0.1:6443", "head")
    assert made.tunnel.startswith("ssh -N -L 127.0.0.1:6443:127.0.0.1:9 ")
    assert signer.requests == {}


def test_without_an_account_it_is_the_administrators_group(
    spec: ClusterSpec, signer: SignerDouble, tmp_path: Path
) -> None:
    config = json.loads(Path(grant(spec, tmp_path).path).read_text())
    signed = base64.b64decode(config["users"][0]["user"]["client-certificate-data"])
    subject = x509.load_pem_x509_certificate(signed).subject.rfc4514_string()
    assert subject == f"CN=ada,O={access.ADMIN_GROUP}"
    assert "namespace" not in config["contexts"][0]["context"]
    assert signer.requests == {}


@pytest.mark.parametrize(
    ("account", "user", "words"),
    [
        ("vision", "ada", 'no account "vision"'),
        ("open", "system:kube-scheduler", "is no user name"),
        ("nlp", "eve", '"eve" is no member of account "nlp"'),
    ],
)
def test_who_has_no_such_rights_gets_none(
    spec: ClusterSpec, signer: SignerDouble, tmp_path: Path, *, account: str, user: str, words: str
) -> None:
    with pytest.raises(LifecycleError) as refused:
        grant(spec, tmp_path, account=account, user=user)
    assert refused.value.diagnostics[0].code == "GC1073"
    assert words in str(refused.value)
    assert signer.arguments == []


def test_a_denied_request_leaves_no_file_and_no_object(
    spec: ClusterSpec, signer: SignerDouble, tmp_path: Path
) -> None:
    signer.denied = True
    with pytest.raises(LifecycleError) as refused:
        grant(spec, tmp_path)
    assert "CertificateSubjectRestriction" in str(refused.value)
    assert signer.requests == {}
    assert not list(tmp_path.glob("kubeconfig*"))


LOGIN = "oidc: {issuer: https://login.example.edu, client_id: kubernetes, scopes: [groups]}"


def test_a_login_at_the_identity_provider_has_no_secret_in_its_file_and_needs_none(
    signer: SignerDouble, tmp_path: Path
) -> None:
    loaded = load_text(SPEC.replace("accounts:", f"{LOGIN}, accounts:"))
    assert loaded.spec is not None, loaded.diagnostics
    made = grant(loaded.spec, tmp_path, account="nlp", user="eve", oidc=True)
    config = json.loads(Path(made.path).read_text())
    assert (made.issuer, made.ends) == ("https://login.example.edu", None)
    assert list(config["users"][0]["user"]) == ["exec"]
    assert config["users"][0]["user"]["exec"]["args"] == [
        "oidc-login",
        "get-token",
        "--oidc-issuer-url=https://login.example.edu",
        "--oidc-client-id=kubernetes",
        "--oidc-extra-scope=groups",
    ]
    assert config["contexts"][0]["context"]["namespace"] == "nlp"
    assert signer.requests == {}
    assert "certificate" not in signer.arguments


@pytest.mark.parametrize(
    ("text", "account", "words"),
    [
        (SPEC, None, "takes no tokens of an identity provider"),
        (SPEC.replace("accounts:", f"{LOGIN}, accounts:"), "vision", 'no account "vision"'),
    ],
)
def test_no_login_is_written_that_does_not_lead_anywhere(
    signer: SignerDouble, tmp_path: Path, *, text: str, account: str | None, words: str
) -> None:
    loaded = load_text(text)
    assert loaded.spec is not None, loaded.diagnostics
    with pytest.raises(LifecycleError) as refused:
        grant(loaded.spec, tmp_path, account=account, oidc=True)
    assert words in str(refused.value)
    assert signer.arguments == []
