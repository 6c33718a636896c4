"""The program sops: found, of a usable version, and run with what is secret on its pipes alone."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ..cluster.outcome import LifecycleError, failure
from .key_record import KeyRecord, damaged

OLDEST = (3, 9, 0)
"""The first with subcommands `encrypt` and `decrypt` (its changelog)."""
_LIMIT_S = 60
"""Timeout of a program that may call a key management service."""
_VERSION = re.compile(r"^sops (\d+)\.(\d+)\.(\d+)", re.MULTILINE)
_INPUT = "/dev/stdin"
_RECIPIENTS = (
    "SOPS_AGE_RECIPIENTS",
    "SOPS_AZURE_KEYVAULT_URLS",
    "SOPS_GCP_KMS_IDS",
    "SOPS_HUAWEICLOUD_KMS_IDS",
    "SOPS_KMS_ARN",
    "SOPS_PGP_FP",
    "SOPS_VAULT_URIS",
)
"""Variables that name recipients, removed: only the spec names them."""
_NO_KEY, _MAC = 128, 51
"""Exit codes: no key of this machine opens it; its content was changed (cmd/sops/codes)."""
_CIPHERTEXT = "ENC["


def encrypt(plaintext: bytes, folder: Path, *, name: str, age: tuple[str, ...]) -> bytes:
    """Return the JSON that sops makes of `plaintext`.

    Args:
        plaintext: goes to sops on its standard input.
        folder: start of the search for .sops.yaml.
        name: the file whose rule in .sops.yaml decides, where `age` is empty.
        age: recipients; .sops.yaml is ignored then.

    Raises:
        LifecycleError: sops is missing or too old (GC1162), or refuses (GC1163).
    """
    config = ["--config", os.devnull] if age else []
    whom = ["--age", ",".join(age)] if age else []
    arguments = [*config, "encrypt", *whom, "--filename-override", str(folder / name)]
    arguments += ["--input-type", "binary", "--output-type", "json", _INPUT]
    environment = {key: value for key, value in os.environ.items() if key not in _RECIPIENTS}
    output = _run(arguments, plaintext, folder, environment)
    if not str(_read(output).get("data", "")).startswith(_CIPHERTEXT):
        raise failure(
            "GC1163",
            f"the rule of .sops.yaml for {name} leaves the data key in the clear",
            hint="give it a rule without encrypted_regex, unencrypted_suffix and their like",
        )
    return output


def decrypt(ciphertext: bytes, folder: Path) -> bytes:
    """Return what `encrypt` was given; raises as `encrypt`, and GC905 where it was damaged."""
    arguments = ["decrypt", "--input-type", "json", "--output-type", "binary", _INPUT]
    return _run(arguments, ciphertext, folder, dict(os.environ))


def recipients(ciphertext: bytes) -> tuple[str, ...]:
    """Return sops' recipients: of age, and the names of keys elsewhere."""
    output = _read(ciphertext).get("sops", {})
    found = [output, *output.get("key_groups", [])]
    names = [
        next((str(entry[key]) for key in _NAMED if entry.get(key)), kind)
        for group in found
        for kind, entries in group.items()
        if isinstance(entries, list) and kind != "key_groups"
        for entry in entries
    ]
    return tuple(sorted(set(names)))


_NAMED = ("recipient", "arn", "resource_id", "key_id", "fp", "vault_url", "engine_path")
"""Fields by which sops' metadata name a key, of each kind one."""


def _run(arguments: list[str], data: bytes, folder: Path, environment: dict[str, str]) -> bytes:
    verb = "encrypt" if "encrypt" in arguments else "decrypt"
    done = _start([_program(folder), *arguments], data, folder, environment)
    if done.returncode == 0:
        return done.stdout
    stderr = done.stderr.decode(errors="replace")
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    detail = "\n".join(lines)
    if done.returncode == _MAC:
        raise failure(
            "GC905",
            "the data key in the state was changed since sops encrypted it",
            detail=detail,
            hint="restore keyring/ of the state from a backup",
        )
    if verb == "decrypt" and done.returncode == _NO_KEY:
        raise failure(
            "GC1163",
            "no key of this machine opens what sops encrypted for "
            + (", ".join(recipients(data)) or "nobody"),
            detail=detail,
            hint="set SOPS_AGE_KEY_FILE to where the identity is, or log in to where the key is; "
            "who has one can add yours: gcluster rotate encryption",
        )
    raise failure(
        "GC1163",
        f"sops can't {verb} the data key: {(lines or ['it gave no reason'])[0]}",
        detail=detail,
        hint="age: of the spec takes recipients, file: a path for which .sops.yaml has a rule"
        if verb == "encrypt"
        else "",
    )


def _start(
    command: list[str], data: bytes, folder: Path, environment: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    try:
        # No terminal: sops can't prompt for a key's passphrase.
        return subprocess.run(
            command,
            input=data,
            capture_output=True,
            check=False,
            timeout=_LIMIT_S,
            cwd=folder if folder.is_dir() else None,  # `down NAME` needs no spec
            env=environment,
            start_new_session=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        detail = getattr(error, "strerror", None) or f"it gave no answer in {_LIMIT_S} s"
        # `from None`: the exception of a timeout holds what was written to it
        raise _unusable(f"sops can't be run: {detail}") from None


def _program(folder: Path) -> str:
    """Return the path of a sops that is new enough."""
    program = shutil.which("sops")
    if program is None:
        raise _unusable("the program sops is not installed")
    # Without this argument it queries the network for its newest version.
    command = [program, "--disable-version-check", "--version"]
    output = _start(command, b"", folder, dict(os.environ)).stdout.decode(errors="replace")
    found = _VERSION.search(output)
    if found is None:
        raise _unusable(f"{program} doesn't say which version of sops it is")
    version = tuple(int(number) for number in found.groups())
    if version < OLDEST:
        raise _unusable(f"sops {'.'.join(found.groups())} is too old")
    return program


def _unusable(what: str) -> LifecycleError:
    oldest = ".".join(str(number) for number in OLDEST)
    return failure(
        "GC1162", what, hint=f"install sops {oldest} or newer: https://github.com/getsops/sops"
    )


def _read(output: bytes) -> dict[str, Any]:
    try:
        found = json.loads(output)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise failure("GC1163", "what sops made of the data key is no JSON of its own")
    return found


_NAME = "gcluster.secrets"
"""File name given to sops where no rule of .sops.yaml is used."""
_PROOF_BYTES = 32


class SopsProvider:
    """sops, run in the folder of the spec."""

    def __init__(self, file: str | None, age: tuple[str, ...], folder: Path) -> None:
        """Run nothing yet."""
        self._file = file
        self._age = age
        self._folder = folder

    @property
    def by(self) -> str:
        """The recipients, or the file whose rule names them."""
        whom = f"for {', '.join(self._age)}" if self._age else f".sops.yaml for {self._file}"
        return f"sops ({whom})"

    def prove(self) -> None:
        """Encrypt and decrypt a few random bytes."""
        proof = secrets.token_hex(_PROOF_BYTES).encode()
        record = self.wrap(proof, "")
        if self.unwrap(record) != proof:
            raise damaged(record)

    def wrap(self, identity: bytes, recipient: str) -> KeyRecord:
        """Have a data key encrypted."""
        name = self._file or _NAME
        wrapped = encrypt(identity, self._folder, name=name, age=self._age)
        return KeyRecord(
            recipient=recipient,
            provider="sops",
            wrapped_for=recipients(wrapped),
            reference=self._file or "",
            wrapped=wrapped,
        )

    def unwrap(self, record: KeyRecord) -> bytes:
        """Decrypt a data key: the ciphertext itself names its recipients."""
        return decrypt(record.wrapped, self._folder)

    def is_of(self, record: KeyRecord) -> bool:
        """Compare the recipients, or the file's name; its rule's current content is ignored."""
        if record.provider != "sops":
            return False
        if self._age:
            return set(self._age) == set(record.wrapped_for)
        return self._file == record.reference
