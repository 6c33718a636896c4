"""Secrets by reference: read where they are, refused in words that never quote them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gcluster.lifecycle.secrets.references import UnreadableSecret, read_reference

SECRET = "correct-horse-battery"  # noqa: S105  # of this test alone


@pytest.fixture
def vaulted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a file that the real ansible-vault encrypted; Ansible finds its password."""
    password = tmp_path / "password"
    password.write_text("of the vault\n")
    monkeypatch.setenv("ANSIBLE_VAULT_PASSWORD_FILE", str(password))
    file = tmp_path / "secrets.yml"
    file.write_text(f"ldap:\n  password: {SECRET}\nnumber: 7\nlist: [1]\n")
    program = Path(sys.executable).with_name("ansible-vault")
    subprocess.run([program, "encrypt", file], check=True, capture_output=True)
    assert SECRET not in file.read_text()
    return file


def test_ansible_vault_is_read_by_key_and_refused_without_its_password(
    vaulted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_reference(f"ansible-vault:{vaulted}#ldap.password") == SECRET
    assert read_reference(f"ansible-vault:{vaulted}#number") == "7"
    assert SECRET in read_reference(f"ansible-vault:{vaulted}")
    for key, why in {"ldap.user": "it has no key", "list": "no single value"}.items():
        with pytest.raises(UnreadableSecret, match=why):
            read_reference(f"ansible-vault:{vaulted}#{key}")
    monkeypatch.delenv("ANSIBLE_VAULT_PASSWORD_FILE")
    with pytest.raises(UnreadableSecret, match="ansible-vault") as caught:
        read_reference(f"ansible-vault:{vaulted}#ldap.password")
    assert SECRET not in str(caught.value)


def test_sops_is_called_for_json_without_the_secret_in_its_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A double: sops is a program of its own that isn't installed here.
    program = tmp_path / "bin" / "sops"
    program.parent.mkdir()
    answer = json.dumps({"ldap": {"password": SECRET}})
    program.write_text(f"#!/bin/sh\necho \"$@\" >{tmp_path}/asked\necho '{answer}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert read_reference("sops:secrets.yaml#ldap.password") == SECRET
    assert (tmp_path / "asked").read_text() == "--decrypt --output-type json secrets.yaml\n"
    program.write_text("#!/bin/sh\necho 'Failed to get the data key' >&2; exit 128\n")
    with pytest.raises(UnreadableSecret, match="Failed to get the data key"):
        read_reference("sops:secrets.yaml#ldap.password")


def test_without_sops_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UnreadableSecret, match="sops is not installed"):
        read_reference("sops:secrets.yaml#a")


def test_the_environment_and_files_are_read_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", f"{SECRET}#x")
    (tmp_path / "secret").write_text(SECRET)
    assert read_reference("env:A_SECRET") == f"{SECRET}#x"
    assert read_reference(f"file:{tmp_path}/secret") == SECRET
    for absent in ("env:NO_SECRET", f"file:{tmp_path}/none"):
        with pytest.raises(UnreadableSecret) as caught:
            read_reference(absent)
        assert caught.value.is_absent


def test_aws_is_queried_for_the_secret_of_an_arn(monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3  # type: ignore[import-untyped]  # noqa: PLC0415  # only here
    from moto import mock_aws  # noqa: PLC0415

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    with mock_aws():
        client = boto3.client("secretsmanager", region_name="eu-west-1")
        value = json.dumps({"password": SECRET})
        arn = client.create_secret(Name="ldap", SecretString=value)["ARN"]
        assert read_reference(f"aws-secret:{arn}#password") == SECRET
        with pytest.raises(UnreadableSecret) as caught:
            read_reference(f"aws-secret:{arn[:-3]}xyz")
        assert SECRET not in str(caught.value)
    with pytest.raises(UnreadableSecret, match="no ARN"):
        read_reference("aws-secret:ldap")


def test_google_and_azure_name_what_they_take() -> None:
    with pytest.raises(UnreadableSecret, match="projects/PROJECT/secrets/NAME"):
        read_reference("gcp-secret:ldap")
    with pytest.raises(UnreadableSecret, match=r"https://VAULT\.vault\.azure\.net"):
        read_reference("azure-secret:ldap")
