"""Data keys wrapped by the program sops, for the recipients of the spec or of .sops.yaml."""

from __future__ import annotations

import secrets
from pathlib import Path

from . import sops
from .key_record import KeyRecord, damaged

_NAME = "gcluster.secrets"
"""What is encrypted is called so where no rule of .sops.yaml is asked."""
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
        """The recipients, or the file whose rule says who they are."""
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
        wrapped = sops.encrypt(identity, self._folder, name=name, age=self._age)
        return KeyRecord(
            recipient=recipient,
            provider="sops",
            wrapped_for=sops.recipients(wrapped),
            reference=self._file or "",
            wrapped=wrapped,
        )

    def unwrap(self, record: KeyRecord) -> bytes:
        """Have a data key decrypted: what is kept says itself by whom."""
        return sops.decrypt(record.wrapped, self._folder)

    def is_of(self, record: KeyRecord) -> bool:
        """Compare the recipients, or the file's name: what its rule says now isn't looked at."""
        if record.provider != "sops":
            return False
        if self._age:
            return set(self._age) == set(record.wrapped_for)
        return self._file == record.reference
