"""References to secrets in the spec: read when they are needed, never shown.

`env:NAME`, `file:PATH`, `sops:FILE#KEY`, `ansible-vault:FILE#KEY`, and secrets in the secret
manager of a cloud: `aws-secret:ARN`, `gcp-secret:projects/P/secrets/S`,
`azure-secret:https://V.vault.azure.net/ secrets/S`. `#KEY` is a key of a map (dots go deeper);
without it the whole is the secret.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import yaml

from ...stacks.provider import ProviderError

_LIMIT_S = 60
"""Timeout of a program that may call a key management service."""


class UnreadableSecret(Exception):  # noqa: N818  # reads as the fact that it is
    """A secret can't be read; the message says why and never quotes the content."""

    def __init__(self, why: str, *, is_absent: bool = False) -> None:
        """Hold the reason; `is_absent`: there is none at that place, as far as can be known."""
        super().__init__(why)
        self.is_absent = is_absent


def read_reference(reference: str) -> str:
    """Return the secret that a reference names, as it is there.

    Raises:
        UnreadableSecret: it can't be read.
    """
    scheme, _, place = reference.partition(":")
    if scheme in {"env", "file"}:
        return _PLAIN[scheme](place)
    where, _, key = place.partition("#")
    text = _READERS[scheme](where)
    return _picked(text, key) if key else text


def _environment(name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise UnreadableSecret("it is not set", is_absent=True)
    return value


def _file(place: str) -> str:
    try:
        return Path(place).expanduser().read_text()
    except UnicodeDecodeError:
        raise UnreadableSecret("it is not text") from None
    except (OSError, RuntimeError) as error:  # RuntimeError: no home for "~user"
        why = getattr(error, "strerror", None) or "it can't be read"
        raise UnreadableSecret(why, is_absent=True) from None


def _sops(file: str) -> str:
    program = shutil.which("sops")
    if program is None:
        raise UnreadableSecret("the program sops is not installed")
    # As JSON a map is a map whatever the file's form; what isn't one has the key "data".
    return _run_program(program, "--decrypt", "--output-type", "json", str(Path(file).expanduser()))


def _ansible_vault(file: str) -> str:
    program = Path(sys.executable).with_name("ansible-vault")
    return _run_program(str(program), "view", str(Path(file).expanduser()))


def _run_program(program: str, *arguments: str) -> str:
    """Return a program's output; it has no terminal, so it can't prompt for a password."""
    try:
        done = subprocess.run(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_LIMIT_S,
            start_new_session=True,
            env={**os.environ, "ANSIBLE_NOCOLOR": "1", "PAGER": "cat"},
        )
        text = done.stdout.decode()
    except subprocess.TimeoutExpired:
        raise UnreadableSecret(f"{Path(program).name} gave no answer in {_LIMIT_S} s") from None
    except (OSError, UnicodeDecodeError):
        raise UnreadableSecret(f"{Path(program).name} can't be run, or gives no text") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise UnreadableSecret(f"{Path(program).name}: {lines[-1] if lines else 'it failed'}")
    return text


def _of_cloud(cloud: str) -> Callable[[str], str]:
    def read(place: str) -> str:
        try:
            found: str = import_module(f"gcluster.stacks.{cloud}.api").read_secret(place)
        except ImportError:
            raise UnreadableSecret(f"pip install 'gcluster[{cloud}]' reads it") from None
        except ProviderError as error:
            raise UnreadableSecret(error.diagnostics[0].summary) from None
        return found

    return read


def _picked(text: str, key: str) -> str:
    """Return one value of a map that is written as YAML or JSON."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        raise UnreadableSecret("it is no map to take a key from") from None
    for step in key.split("."):
        if not isinstance(found, dict) or step not in found:
            raise UnreadableSecret(f"it has no key {key}", is_absent=True)
        found = found[step]
    if isinstance(found, (dict, list)) or found is None:
        raise UnreadableSecret(f"{key} is no single value")
    return str(found)


_PLAIN: dict[str, Callable[[str], str]] = {"env": _environment, "file": _file}
_READERS: dict[str, Callable[[str], str]] = {
    "sops": _sops,
    "ansible-vault": _ansible_vault,
    "aws-secret": _of_cloud("aws"),
    "gcp-secret": _of_cloud("gcp"),
    "azure-secret": _of_cloud("azure"),
}
