"""The engine's provider logs in as gcluster does: it finds neither profile nor token by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcluster.stacks.oci.api import engine_login
from gcluster.stacks.pulumi.engine.command import StackPlace

CONFIG = """\
[DEFAULT]
user=ocid1.user.oc1..wrong
[LAB]
user=ocid1.user.oc1..ada
tenancy=ocid1.tenancy.oc1..acme
fingerprint=ab:cd
key_file={key}
pass_phrase=hush
[SESSION]
key_file={key}
security_token_file={key}
"""


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("OCI_CLI_AUTH", raising=False)
    key = tmp_path / "key.pem"
    key.write_text("a key")
    monkeypatch.setenv("OCI_CONFIG_FILE", str(tmp_path / "config"))
    (tmp_path / "config").write_text(CONFIG.format(key=key))
    return key


def test_the_engine_gets_the_profile_that_was_chosen_in_its_environment(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCI_CLI_PROFILE", "LAB")
    place = StackPlace(
        cluster="lab", site="here", state="file:///s", workdir=tmp_path, login=engine_login()
    )
    answer = {k: v for k, v in place.environment("secret").items() if k.startswith("TF_VAR_")}
    assert answer == {
        "TF_VAR_auth": "ApiKey",
        "TF_VAR_fingerprint": "ab:cd",
        "TF_VAR_private_key_password": "hush",
        "TF_VAR_private_key_path": str(config),
        "TF_VAR_tenancy_ocid": "ocid1.tenancy.oc1..acme",
        "TF_VAR_user_ocid": "ocid1.user.oc1..ada",
    }


def test_a_session_of_the_command_line_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCI_CLI_PROFILE", "SESSION")
    wanted = {"TF_VAR_auth": "SecurityToken", "TF_VAR_config_file_profile": "SESSION"}
    assert engine_login() == wanted


def test_an_instance_logs_in_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCI_CLI_AUTH", "instance_principal")
    assert engine_login() == {"TF_VAR_auth": "InstancePrincipal"}


def test_a_profile_that_is_not_there_is_left_to_the_first_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OCI_CLI_PROFILE", "NOBODY")
    assert engine_login() == {}
