"""A cluster's data key under sops: the program itself, with age keys, and its double.

The program is built from its Go module by `make test-stores`.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pyrage
import pytest
from tests.lifecycle.leak_search import spellings
from tests.shell_double import write_double

from gcluster.lifecycle.cluster.outcome import LifecycleError
from gcluster.lifecycle.secrets import sops
from gcluster.lifecycle.secrets.ciphertexts import Ciphertext, reencrypt
from gcluster.lifecycle.secrets.key_record import KeyRecord
from gcluster.lifecycle.secrets.vault import SecretVault
from gcluster.lifecycle.state import StateStore
from gcluster.schemas.diagnostics import Diagnostic
from gcluster.schemas.spec.secrets import AgeSecrets, Secrets, SopsSecrets

PLAIN = b"planted-51ce20 munge key"
TOOLS = Path(__file__).parents[2] / "stores" / "bin"
RULE = "creation_rules:\n  - path_regex: secrets.yaml$\n    age: {recipient}\n"


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give this machine an age identity where sops finds it; return its public half."""
    for name in list(os.environ):
        if name.startswith("SOPS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "mine.key").write_text(str(identity))
    monkeypatch.setenv("SOPS_AGE_KEY_FILE", str(tmp_path / "mine.key"))
    return str(identity.to_public())


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the program sops on the PATH."""
    monkeypatch.setenv("PATH", f"{TOOLS}{os.pathsep}{os.environ['PATH']}")


def _vault(folder: Path, secrets: Secrets) -> SecretVault:
    store = StateStore.open(f"file://{folder / 'state'}")
    return SecretVault.open(store, secrets, "id", folder / "keys", folder)


def _other() -> str:
    return str(pyrage.x25519.Identity.generate().to_public())


def _refusal(vault: SecretVault) -> Diagnostic:
    with pytest.raises(LifecycleError) as caught:
        vault.prove()
    return caught.value.diagnostics[0]


@pytest.mark.stores
@pytest.mark.usefixtures("program")
def test_secrets_are_ciphertext_that_a_recipient_opens(mine: str, tmp_path: Path) -> None:
    secrets = SopsSecrets(age=(mine, _other()))
    _vault(tmp_path, secrets).ensure("munge", lambda: PLAIN)
    assert _vault(tmp_path, secrets).reveal("munge") == PLAIN

    stored = [p.read_bytes() for p in (tmp_path / "state").rglob("*") if p.is_file()]
    for data in stored:
        assert not [answer for answer in spellings(PLAIN) if answer in data]
        assert b"AGE-SECRET-KEY" not in data
    (munge,) = (tmp_path / "state" / "secrets" / "munge").iterdir()
    box = msgspec.json.decode(munge.read_bytes(), type=Ciphertext).box
    assert box.startswith(b"age-encryption.org/v1\n-> X25519 ")
    (kept,) = (tmp_path / "state" / "keyring").iterdir()
    record = msgspec.json.decode(kept.read_bytes(), type=KeyRecord)
    assert set(record.wrapped_for) == set(secrets.age)
    assert b'"data": "ENC[AES256_GCM,' in record.wrapped
    # What sops itself makes of it is the data key.
    assert sops.decrypt(record.wrapped, tmp_path).startswith(b"AGE-SECRET-KEY-1")


@pytest.mark.stores
@pytest.mark.usefixtures("program")
def test_the_rule_of_the_users_file_has_the_recipients(mine: str, tmp_path: Path) -> None:
    secrets = SopsSecrets(file="secrets.yaml")
    (tmp_path / ".sops.yaml").write_text(RULE.format(recipient=mine))
    vault = _vault(tmp_path, secrets)
    vault.ensure("munge", lambda: PLAIN)
    (record,) = vault.keyring.records().values()
    assert (record.wrapped_for, record.reference) == ((mine,), "secrets.yaml")
    assert not (tmp_path / "secrets.yaml").exists()


@pytest.mark.stores
@pytest.mark.usefixtures("program")
def test_the_environment_adds_no_recipient(
    mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".sops.yaml").write_text(RULE.format(recipient=mine))
    monkeypatch.setenv("SOPS_AGE_RECIPIENTS", _other())
    for secrets in (SopsSecrets(age=(mine,)), SopsSecrets(file="secrets.yaml")):
        record = _vault(tmp_path, secrets).keyring.provider.wrap(b"AGE", "")
        assert record.wrapped_for == (mine,)


@pytest.mark.stores
@pytest.mark.usefixtures("program", "mine")
def test_wrong_recipients_are_named_before_anything_is_kept(tmp_path: Path) -> None:
    other = _other()
    reported = _refusal(_vault(tmp_path, SopsSecrets(age=(other,))))
    assert (reported.code, other in reported.summary) == ("GC1163", True)
    assert "SOPS_AGE_KEY_FILE" in reported.hint
    assert not (tmp_path / "state").exists()


@pytest.mark.stores
@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("rules", ["", "creation_rules: []\n", RULE.replace("secrets", "another")])
def test_a_file_that_no_rule_fits_is_reported(mine: str, tmp_path: Path, rules: str) -> None:
    if rules:
        (tmp_path / ".sops.yaml").write_text(rules.replace("{recipient}", mine))
    reported = _refusal(_vault(tmp_path, SopsSecrets(file="secrets.yaml")))
    assert reported.code == "GC1163"
    assert "rule" in reported.summary or "config file" in reported.summary
    assert not (tmp_path / "state").exists()


@pytest.mark.stores
@pytest.mark.usefixtures("program")
def test_secrets_move_to_sops_and_to_other_recipients(
    mine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLD_KEY", str(pyrage.x25519.Identity.generate()))
    old = _vault(tmp_path, AgeSecrets(key="env:OLD_KEY")).ensure("munge", lambda: PLAIN)
    for age in ((mine,), (mine, _other())):
        moved = _vault(tmp_path, SopsSecrets(age=age))
        reencrypt(StateStore.open(f"file://{tmp_path}/state"), moved.keyring)
        monkeypatch.delenv("OLD_KEY", raising=False)
        again = _vault(tmp_path, SopsSecrets(age=age))
        (record,) = again.keyring.records().values()
        assert set(record.wrapped_for) == set(age)
        assert again.reveal("munge") == PLAIN
        assert again.version("munge") == old.id


@pytest.mark.usefixtures("mine")
def test_a_machine_without_sops_is_reported_which_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reported = _refusal(_vault(tmp_path, SopsSecrets(age=(_other(),))))
    assert (reported.code, reported.summary) == ("GC1162", "the program sops is not installed")
    assert "3.9.0 or newer" in reported.hint


@pytest.mark.usefixtures("mine")
@pytest.mark.parametrize(
    ("version", "message"),
    [("sops 3.8.1 (latest)", "sops 3.8.1 is too old"), ("hello", "doesn't say which version")],
)
def test_a_version_that_is_not_usable_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, message: str
) -> None:
    _double(tmp_path, monkeypatch, f"echo '{version}'")
    reported = _refusal(_vault(tmp_path, SopsSecrets(age=(_other(),))))
    assert reported.code == "GC1162"
    assert message in reported.summary


@pytest.mark.usefixtures("mine")
def test_an_answer_with_the_data_key_in_the_clear_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = 'printf "{\\"data\\": \\"clear\\"}"'
    clear = f'case "$*" in *--version) echo "sops 3.9.0";; *) {answer};; esac'
    _double(tmp_path, monkeypatch, clear)
    reported = _refusal(_vault(tmp_path, SopsSecrets(file="secrets.yaml")))
    assert (reported.code, "in the clear" in reported.summary) == ("GC1163", True)


@pytest.mark.usefixtures("mine")
def test_no_argument_holds_what_is_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = tmp_path / "arguments"
    script = f'echo "$*" >>{seen}; env >>{seen}; echo "sops 3.13.3"; cat >{tmp_path}/given'
    _double(tmp_path, monkeypatch, script)
    with pytest.raises(LifecycleError):
        sops.encrypt(PLAIN, tmp_path, name="secrets.yaml", age=())
    assert (tmp_path / "given").read_bytes() == PLAIN
    assert "encrypt" in seen.read_text()
    assert not [answer for answer in spellings(PLAIN) if answer in seen.read_bytes()]


def _double(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a double of sops before all else on the PATH."""
    place = folder / "bin"
    place.mkdir()
    write_double(place / "sops", script)
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
