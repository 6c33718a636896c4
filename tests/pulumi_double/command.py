"""The double's command line: the verbs of `pulumi` that the Automation API calls."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .backend import SECRET, Refusal, StackFiles, now

if TYPE_CHECKING:  # a call of the SDK is a process, and most of its calls need none of these
    from .clouds import Cloud
    from .crypter import Crypter
    from .deployment import Deployment
    from .events import EventStream

Json = dict[str, Any]  # the command's JSON
VERSION = "v3.999.0-double"
_NAME = "double of pulumi"
_FLAGS = {
    "--yes", "--skip-preview", "--non-interactive", "--json", "--show-secrets", "--force", "--all",
    "--suppress-progress", "--suppress-outputs", "--continue-on-error", "--exclude-protected",
    "--clear-pending-creates", "--preview-only", "--no-select", "--diff", "--protect=true",
    "--generate-code=false", "--preserve-config", "--expect-no-changes",
}  # fmt: skip
_VALUES = {
    "--stack", "--client", "--exec-kind", "--event-log", "--color", "--replace", "--parallel",
    "--message", "--file", "--page-size", "--page", "--secrets-provider", "--out",
}  # fmt: skip
_CHANGING = {"up", "refresh", "destroy", "import", "stack import", "stack rm", "stack rename"}


class Words:
    """A command line, taken apart; what the double does not know it refuses."""

    def __init__(self, words: list[str]) -> None:
        """Raise Refusal for options that are not known."""
        self.flags: set[str] = set()
        self.values: dict[str, list[str]] = {}
        self.rest: list[str] = []
        todo = list(words)
        while todo:
            word = todo.pop(0)
            option, is_pair, value = word.partition("=")
            if option in _VALUES:
                self.values.setdefault(option, []).append(value if is_pair else todo.pop(0))
            elif word in _FLAGS or option in _FLAGS:
                self.flags.add(option)
            elif word.startswith("-"):
                raise Refusal(f"error: this {_NAME} does not know {word}")
            else:
                self.rest.append(word)

    def value(self, option: str) -> str:
        """Return an option's last value, "" where it is not given."""
        return self.values.get(option, [""])[-1]


def main(words: list[str], root: Path) -> int:
    """Answer as `pulumi` would, from the folder where the double is installed."""
    if words and words[0] in {"version", "--version"}:
        sys.stdout.write(f"{VERSION}\n")
        return 0
    with (root / "pulumi-double.log").open("a", encoding="utf-8") as log:
        log.write(json.dumps({"double": True, "pid": os.getpid(), "words": words}) + "\n")
    try:
        return Command(Words(words), root).run()
    except Refusal as error:
        sys.stderr.write(f"{error}\n")
        return 255


class Command:
    """One call."""

    def __init__(self, words: Words, root: Path) -> None:
        """Find out which stack is meant."""
        self._words, self._root = words, root
        self._settings: Json = json.loads((root / "double.json").read_text(encoding="utf-8"))
        verb, *rest = words.rest
        self._verb = f"{verb} {rest[0]}" if verb in {"stack", "plugin", "config"} and rest else verb
        self._names = rest[1:] if " " in self._verb else rest
        settings = Path("Pulumi.yaml").read_text(encoding="utf-8")
        [project] = re.findall(r"^name: *[\"']?([^\s\"']+)", settings, re.MULTILINE)
        stack = words.value("--stack") or (self._names[0] if self._names else "")
        backend = os.environ.get("PULUMI_BACKEND_URL", "")
        self._backend, self._files = backend, StackFiles(backend, project, stack)

    def run(self) -> int:
        """Do it."""
        simple = {
            "whoami": self._whoami,
            "plugin ls": lambda: _print([]),
            "stack ls": self._list,
            "stack init": self._init,
            "stack select": lambda: self._files.read() and None,
            "stack output": self._outputs,
            "stack export": self._export,
            "stack history": lambda: _print(self._files.history()),
            "config": lambda: _print({}),
            "config set": lambda: None,
            "cancel": self._files.free,
            "preview": lambda: self._operate(planning=True),
        }
        if self._verb in simple:
            return simple[self._verb]() or 0
        if self._verb not in _CHANGING:
            raise Refusal(f'error: this {_NAME} has no verb "{self._verb}"')
        if "--preview-only" in self._words.flags:
            return self._operate(planning=True)
        lock = self._files.lock()
        try:
            if self._verb == "stack import":
                given = json.loads(Path(self._words.value("--file")).read_bytes())
                given["deployment"].pop("pending_operations", None)  # as the engine does
                self._take(given)
                return 0
            if self._verb == "stack rename":
                [name] = self._names
                self._files.rename(StackFiles(self._backend, self._files.project, name))
                return 0
            return self._remove() if self._verb == "stack rm" else self._operate(planning=False)
        finally:
            lock.unlink(missing_ok=True)

    def _operate(self, *, planning: bool) -> int:
        from .clouds import CloudError  # noqa: PLC0415  # see TYPE_CHECKING
        from .deployment import Deployment  # noqa: PLC0415  # as above
        from .events import EventStream  # noqa: PLC0415  # as above
        from .faults import Faults  # noqa: PLC0415  # as above

        began, events = now(), EventStream(self._words.value("--event-log"))
        sys.stdout.write(f"{_NAME}: {self._verb} of {self._files.stack}; no engine is at work\n")
        sys.stdout.flush()
        try:
            cloud = make_cloud(self._settings, self._root)
            deployment = Deployment(
                self._files, self._crypter(), cloud, events, Faults(self._root),
                planning=planning, replace=self._words.values.get("--replace", ()),
            )  # fmt: skip
            self._work(deployment, cloud, events)
        except CloudError as error:
            events.emit_diagnostic("error", str(error))
        if events.errors:
            events.emit_diagnostic("error", f"{'preview' if planning else self._kind} failed")
        events.close()
        if not planning:
            result = "failed" if events.errors else "succeeded"
            self._files.add_to_history(self._kind, began, result, dict(events.changes))
        if events.errors:
            sys.stderr.write("".join(f"error: {answer}\n" for answer in events.errors))
            return 255
        return 0

    def _work(self, deployment: Deployment, cloud: Cloud, events: EventStream) -> None:
        if self._verb == "refresh":
            deployment.refresh(clear_pending="--clear-pending-creates" in self._words.flags)
        elif self._verb == "destroy":
            left = deployment.destroy(exclude_protected="--exclude-protected" in self._words.flags)
            if left:
                sys.stdout.write(f"There are still {left} protected resources\n")
        elif self._verb == "import":
            for item in json.loads(Path(self._words.value("--file")).read_bytes())["resources"]:
                urn = f"{deployment.prefix}{item['type']}::{item['name']}"
                deployment.adopt(
                    {"urn": urn, "type": item["type"], "id": item["id"], "custom": True,
                     "dependencies": [], "propertyDependencies": {}, "protect": True}
                )  # fmt: skip
        else:
            from .services import run_program  # noqa: PLC0415  # a second, and only two verbs need it

            run_program(
                self._words.value("--client"), deployment, cloud, events,
                project=self._files.project, stack=self._files.stack, work_dir=str(Path.cwd()),
            )  # fmt: skip

    @property
    def _kind(self) -> str:
        return {"up": "update", "import": "resource-import"}.get(self._verb, self._verb)

    def _crypter(self) -> Crypter:
        from .crypter import Crypter  # noqa: PLC0415  # see TYPE_CHECKING

        passphrase = os.environ.get("PULUMI_CONFIG_PASSPHRASE")
        if passphrase is None:
            raise Refusal("error: passphrase must be set with PULUMI_CONFIG_PASSPHRASE")
        salt = ""
        if self._files.checkpoint.exists():
            salt = self._files.read()["secrets_providers"]["state"]["salt"]
        return Crypter(passphrase, salt)

    def _whoami(self) -> None:
        user = {"user": "double", "url": os.environ.get("PULUMI_BACKEND_URL", ""),
                "organizations": []}  # fmt: skip
        _print(user) if "--json" in self._words.flags else sys.stdout.write("double\n")

    def _list(self) -> None:
        stacks = self._files.checkpoint.parent.glob("*.json")
        _print([{"name": file.stem, "current": False} for file in sorted(stacks)])

    def _init(self) -> None:
        if self._files.checkpoint.exists():
            raise Refusal(f"error: stack '{self._files.stack}' already exists")
        from .faults import Faults  # noqa: PLC0415  # see TYPE_CHECKING

        lock = self._files.lock()
        Faults(self._root).strike("locked", self._files.stack)
        self._take({"deployment": {"resources": []}})
        lock.unlink()

    def _take(self, exported: Json) -> None:
        state = {"type": "passphrase", "state": {"salt": self._crypter().state}}
        self._files.write({"secrets_providers": state, **exported["deployment"]})

    def _remove(self) -> int:
        if self._files.read().get("resources") and "--force" not in self._words.flags:
            raise Refusal(
                f"error: '{self._files.stack}' still has resources; removal rejected. Possible "
                "actions: `pulumi destroy`, or --force"
            )
        self._files.remove()
        return 0

    def _export(self) -> None:
        deployment = self._files.read()
        if "--show-secrets" in self._words.flags:
            deployment["resources"] = self._crypter().unseal(deployment.get("resources") or [])
        _print({"version": 3, "deployment": deployment})

    def _outputs(self) -> None:
        states = self._files.read().get("resources") or []
        found = next((r["outputs"] for r in states if r["type"] == "pulumi:pulumi:Stack"), {})
        if SECRET not in json.dumps(found):
            return _print(found)
        opened = self._crypter().unseal(found)
        shown = "--show-secrets" in self._words.flags
        return _print({k: _output(found[k], value, shown=shown) for k, value in opened.items()})


def make_cloud(settings: Json, root: Path) -> Cloud:
    """Return the cloud that the installation names."""
    if settings["cloud"] == "invented":
        from .clouds import InventedCloud  # noqa: PLC0415  # see TYPE_CHECKING

        return InventedCloud(root / "cloud.json")
    if settings["cloud"] == "moto":
        from .aws_cloud import MotoCloud  # noqa: PLC0415  # see TYPE_CHECKING

        return MotoCloud(settings["endpoint"], settings["region"])
    if settings["cloud"] == "google":
        from tests.google_double.cloud import GoogleCloud  # noqa: PLC0415  # see TYPE_CHECKING

        return GoogleCloud(settings["endpoint"])
    if settings["cloud"] == "oci":
        from tests.oci_double.cloud import OciCloud  # noqa: PLC0415  # see TYPE_CHECKING

        return OciCloud(settings["endpoint"])
    if settings["cloud"] == "azure":
        from tests.azure_double.cloud import AzureCloud  # noqa: PLC0415  # see TYPE_CHECKING

        return AzureCloud(settings["endpoint"], settings["certificate"])
    raise Refusal(f'error: this {_NAME} has no cloud "{settings["cloud"]}"')


def _output(sealed: Any, opened: Any, *, shown: bool) -> Any:
    from .deployment import plain  # noqa: PLC0415  # see TYPE_CHECKING

    return plain(opened) if shown or opened == sealed else "[secret]"


def _print(value: Any) -> None:
    json.dump(value, sys.stdout)
    sys.stdout.write("\n")
