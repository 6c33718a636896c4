"""People log in at an identity provider: real API server, kubectl and RBAC; the provider's double.

The double answers what OpenID Connect Discovery 1.0 has a relying party read, over TLS, and signs
tokens as a provider does. The plugin that opens a browser is a double too: it prints a token.
"""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import jwt
import pytest
from bench.simulated.api_server import ApiServer
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID
from tests.roles.rendering import ROOT, WRITES, written_files

from gcluster.inventory.compile.kubernetes import jwt_authenticator
from gcluster.inventory.compile.kubernetes_objects.accounts import memberships, namespaces
from gcluster.inventory.compile.kubernetes_objects.facts import kubernetes_facts
from gcluster.lifecycle.bundle.role_tasks import FACTS, filled_tasks, loaded, role_variables
from gcluster.lifecycle.kubernetes.access import login_command
from gcluster.lifecycle.kubernetes.kubectl import kubeconfig_document
from gcluster.schemas.catalog import load_catalog
from gcluster.schemas.spec import ClusterSpec, KubernetesScheduler, Oidc

from .spec import TEXT, hosts_of, spec_of

pytestmark = pytest.mark.kubernetes_api
_CONFIG = "/etc/kubernetes/gcluster/authentication.yaml"
_READ_WITHIN_S = 90
"""The API server looks at its file when it changes, and each minute."""


class ProviderDouble:
    """An identity provider on loopback, with a certificate of its own authority."""

    def __init__(self, folder: Path) -> None:
        """Make its keys."""
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        certificate = _certificate(folder)
        self.authority = certificate.decode()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "provider.pem", folder / "provider.key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()

    def token(self, *, key: rsa.RSAPrivateKey | None = None, **claims: Any) -> str:
        """Sign a token of an hour; another key is another provider's."""
        now = int(time.time())
        basic = {"iss": self.url, "aud": "kubernetes", "iat": now, "exp": now + 3600}
        answer = basic | {"hd": "example.edu"} | claims
        return jwt.encode(answer, key or self.key, algorithm="RS256", headers={"kid": "one"})

    def close(self) -> None:
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = {
                    "/.well-known/openid-configuration": {
                        "issuer": provider.url,
                        "jwks_uri": f"{provider.url}/keys",
                        "response_types_supported": ["code"],
                        "subject_types_supported": ["public"],
                        "id_token_signing_alg_values_supported": ["RS256"],
                    },
                    "/keys": {"keys": [_public(provider.key)]},
                }.get(self.path)
                body = json.dumps(found).encode()
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write no log."""

        return Handler


def _public(key: rsa.RSAPrivateKey) -> dict[str, Any]:
    made: dict[str, Any] = jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return made | {"kid": "one", "use": "sig", "alg": "RS256"}


def _certificate(folder: Path) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "provider")])
    now = datetime.now(UTC)
    address = x509.IPAddress(ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    (folder / "provider.pem").write_bytes(pem)
    (folder / "provider.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return pem


class World:
    """An API server that takes a provider's tokens, and a person's kubectl."""

    def __init__(self, folder: Path, provider: ProviderDouble) -> None:
        """Write the API server's file as the role does."""
        self.folder, self.provider = folder, provider
        self.config = folder / "authentication.yaml"
        self.write("1.35.4")
        self.api = ApiServer(f"--authentication-config={self.config}")
        plugin = folder / "kubectl-oidc_login"
        plugin.write_text(
            "#!/bin/sh\n"
            f'[ "$*" = "get-token --oidc-issuer-url={provider.url} --oidc-client-id=kubernetes '
            f'--certificate-authority-data={_coded(provider.authority)}" ] || exit 9\n'
            'printf \'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
            '"status": {"token": "%s"}}\' "$TOKEN"\n'
        )
        plugin.chmod(0o755)

    def spec(self, **claims: str) -> ClusterSpec:
        """Return the cluster, whose tokens need these claims."""
        provider = self.provider
        ca = provider.authority.replace("\n", "\n      ")
        needed = json.dumps(claims or {"hd": "example.edu"})
        return spec_of(
            TEXT.replace(
                "  accounts:",
                f"  oidc:\n    issuer: {provider.url}\n    client_id: kubernetes\n"
                "    username_claim: preferred_username\n"
                "    groups: {physics: [/physics]}\n    admin_groups: [/platform]\n"
                f"    required_claims: {needed}\n    ca: |\n      {ca}\n  accounts:",
            )
        )

    def oidc(self, **claims: str) -> Oidc:
        """Return its login."""
        scheduler = self.spec(**claims).scheduler
        assert isinstance(scheduler, KubernetesScheduler)
        assert scheduler.oidc is not None
        return scheduler.oidc

    def write(self, version: str, **claims: str) -> None:
        """Write the file that role kubernetes writes on control planes of that version."""
        role = ROOT / "roles/kubernetes"
        answer = {
            "kubernetes_role": "controller",
            "kubernetes_cluster": "trial",
            "kubernetes_endpoint": "head:6443",
            "kubernetes_control_planes": [{"name": "node01", "address": "10.0.0.1"}],
            "kubernetes_version": version,
            "kubernetes_authentication": jwt_authenticator(self.oidc(**claims)),
            "kubernetes_host": {
                "cgroup": 2, "container": False, "cpus": 8, "memory_mib": 9000,
                "kernel": "6.8.0", "kubeadm": version, "address": "10.0.0.1",
            },
        }  # fmt: skip
        variables = role_variables(role, answer, FACTS["debian-13"])
        writing = [task for task in loaded(role / "tasks/configure.yml") if WRITES in task]
        tasks = filled_tasks(writing, variables, role)
        [text] = [found for task in tasks if (found := written_files(task).get(_CONFIG))]
        new = self.config.with_suffix(".new")
        new.write_text(text)
        new.replace(self.config)

    def kubectl(self, token: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a person's kubectl, whose plugin gets this token."""
        admin = json.loads(self.api.kubeconfig.read_text())
        login = {"exec": login_command(self.oidc())}
        made = kubeconfig_document("x", admin["clusters"][0]["cluster"], "oidc", login)
        (self.folder / "person").write_text(json.dumps(made))
        path = f"{self.folder}:{self.api.folder}:{os.environ['PATH']}"
        own = {**os.environ, "PATH": path, "HOME": str(self.folder), "TOKEN": token}
        command = ["kubectl", f"--kubeconfig={self.folder / 'person'}", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=own)

    def may(self, token: str, *what: str) -> bool:
        """Say whether a token's holder may do this; the API server itself answers."""
        done = self.kubectl(token, "auth", "can-i", *what)
        assert done.stdout.strip() in {"yes", "no"}, done.stderr
        return done.stdout.strip() == "yes"


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Give a running API server with the compiled accounts, and the provider."""
    folder = tmp_path_factory.mktemp("oidc")
    provider = ProviderDouble(folder)
    made = World(folder, provider)
    try:
        with made.api:
            spec = made.spec()
            facts = kubernetes_facts(spec, hosts_of(spec), load_catalog())
            answer = made.api.apply([*namespaces(facts), *memberships(facts)])
            assert answer.returncode == 0, answer.stderr
            yield made
    finally:
        provider.close()


JOBS = ("create", "jobs.batch", "--namespace=physics")
ALL = ("*", "*", "--all-namespaces")


def test_a_member_by_name_and_one_by_group_have_the_account_s_rights(world: World) -> None:
    ada = world.provider.token(preferred_username="ada")
    group = world.provider.token(preferred_username="zoe", groups=["/physics"])
    output = json.loads(world.kubectl(group, "auth", "whoami", "--output=json").stdout)
    assert output["status"]["userInfo"]["username"] == "oidc:zoe"
    assert "oidc:/physics" in output["status"]["userInfo"]["groups"]
    for token in (ada, group):
        assert world.may(token, *JOBS)
        assert not world.may(token, "create", "jobs.batch", "--namespace=kube-system")
        assert not world.may(token, *ALL)


def test_a_group_of_administrators_administers_and_another_s_people_have_nothing(
    world: World,
) -> None:
    assert world.may(world.provider.token(preferred_username="zoe", groups=["/platform"]), *ALL)
    assert not world.may(world.provider.token(preferred_username="zoe", groups=["/other"]), *JOBS)


def test_no_token_names_a_user_or_a_group_of_kubernetes_or_of_certificates(world: World) -> None:
    token = world.provider.token(
        preferred_username="system:admin",
        groups=["system:masters", "kubeadm:cluster-admins", "gcluster:physics"],
    )
    assert not world.may(token, *ALL)
    assert not world.may(token, *JOBS)


def test_tokens_for_others_of_others_and_without_what_is_required_are_refused(
    world: World,
) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    old = int(time.time()) - 60
    for token in (
        world.provider.token(preferred_username="ada", aud="grafana"),
        world.provider.token(preferred_username="ada", key=other),
        world.provider.token(preferred_username="ada", hd="example.com"),
        world.provider.token(preferred_username="ada", exp=old),
        world.provider.token(),
    ):
        done = world.kubectl(token, "get", "jobs", "--namespace=physics")
        assert done.returncode != 0
        assert "Unauthorized" in done.stderr or "must be logged in" in done.stderr, done.stderr


def test_a_server_reads_the_older_release_s_file_without_a_restart(world: World) -> None:
    world.write("1.33.2", hd="example.org")
    assert "v1beta1" in world.config.read_text()
    token = world.provider.token(preferred_username="ada", hd="example.org")
    until = time.monotonic() + _READ_WITHIN_S
    while world.kubectl(token, "auth", "whoami").returncode and time.monotonic() < until:
        time.sleep(1)
    assert world.may(token, *JOBS)


def test_a_server_starts_while_its_provider_is_away(world: World, tmp_path: Path) -> None:
    text = world.config.read_text().replace(world.provider.url, "https://login.invalid")
    (tmp_path / "authentication.yaml").write_text(text)
    with ApiServer(f"--authentication-config={tmp_path / 'authentication.yaml'}") as api:
        assert api.kubectl("auth", "whoami").returncode == 0, "who has another login goes on"
