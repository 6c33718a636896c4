"""A double of slurmdbd: takes `sacctmgr` commands, refuses as it does, prints as it prints.

What it refuses was seen with slurmdbd 24.11.5 and MariaDB 11.8.6. Where that one took an order and
broke its tree (removing an account that has parts), this one refuses.
"""

from __future__ import annotations

from dataclasses import dataclass, field


class RefusedError(Exception):
    """The command would have ended with exit status 1."""


@dataclass
class Slurmdb:
    """The database of one cluster; values are kept as text, as they would be printed."""

    qos: dict[str, dict[str, str]] = field(default_factory=lambda: {"normal": {}})
    accounts: dict[str, dict[str, str]] = field(default_factory=lambda: {"root": {"qos": "normal"}})
    members: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)

    def run(self, command: tuple[str, ...]) -> None:
        """Run `sacctmgr --immediate --quiet VERB ENTITY ...`."""
        assert command[:3] == ("sacctmgr", "--immediate", "--quiet")
        verb, entity, *rest = command[3:]
        split = rest.index("set") if "set" in rest else len(rest)
        where = dict(word.split("=", 1) for word in rest[:split] if word != "where")
        settings = dict(word.split("=", 1) for word in rest[split + 1 :])
        names = where.pop("name").split(",")
        if entity != "qos":
            self._require(where.pop("cluster") == "demo", "the cluster is named")
        getattr(self, f"_{verb}_{entity}")(names, where, settings)
        self._check_defaults()

    def printed(self) -> tuple[str, str, str]:
        """Return what the three queries print: QOS, associations without parents' limits, users."""
        qos = [
            "|".join(
                [
                    name,
                    one.get("priority", "0"),
                    one.get("preempt", ""),
                    one.get("preemptmode", "cluster"),
                    _clock(int(one.get("gracetime", "0"))),
                    one.get("grptres", ""),
                    one.get("maxtresperuser", ""),
                    _clock(int(one["maxwall"]) * 60) if "maxwall" in one else "",
                    one.get("maxjobsperuser", ""),
                ]
            )
            for name, one in self.qos.items()
        ]
        rows = ["root||root||1|||"]
        for name, one in self.accounts.items():
            rows.append(f"{name}|{one.get('parent', '')}|||{_limits(one)}")
        for (account, user), one in self.members.items():
            rows.append(f"{account}||{user}||{_limits(one)}")
        users = ["root|root", *(f"{user}|{account}" for user, account in self.defaults.items())]
        return "\n".join(qos), "\n".join(rows), "\n".join(users)

    def _add_qos(self, names: list[str], where: dict[str, str], _: dict[str, str]) -> None:
        for name in names:
            self._require(name not in self.qos, f"QOS {name} is new")
            self.qos[name] = {}
        self._set(self.qos, names, where)

    def _modify_qos(self, names: list[str], _: dict[str, str], settings: dict[str, str]) -> None:
        self._set(self.qos, names, settings)

    def _remove_qos(self, names: list[str], _: dict[str, str], __: dict[str, str]) -> None:
        for name in names:
            used = [one.get("preempt", "") for one in self.qos.values()]
            used += [
                one.get("qos", "") for one in (*self.accounts.values(), *self.members.values())
            ]
            self._require(all(name not in text.split(",") for text in used), f"{name} is unused")
            self._require(name != "normal", "normal stays")
            del self.qos[name]

    def _add_account(self, names: list[str], where: dict[str, str], _: dict[str, str]) -> None:
        for name in names:
            self._require(name not in self.accounts, f"account {name} is new")
            self.accounts[name] = {}
        self._set(self.accounts, names, {"parent": "root"} | where)

    def _modify_account(self, names: list[str], _: dict[str, str], new: dict[str, str]) -> None:
        self._set(self.accounts, names, new)
        for name in names:
            seen, here = set(), name
            while here != "root":
                self._require(here not in seen, f"account {name} isn't part of itself")
                seen.add(here)
                here = self.accounts[here]["parent"]

    def _remove_account(self, names: list[str], _: dict[str, str], __: dict[str, str]) -> None:
        for name in names:
            parts = [one for one in self.accounts.values() if one.get("parent") == name]
            users = [user for account, user in self.members if account == name]
            self._require(not parts and not users, f"account {name} is empty")
            self._require(name != "root", "root stays")
            del self.accounts[name]

    def _add_user(self, names: list[str], where: dict[str, str], _: dict[str, str]) -> None:
        account = where.pop("account")
        self._require(account in self.accounts, f"account {account} is there")
        for name in names:
            self._require((account, name) not in self.members, f"{name} is new in {account}")
            self.members[account, name] = {}
            self.defaults.setdefault(name, account)
        self._set(self.members, [(account, name) for name in names], where)

    def _modify_user(
        self, names: list[str], where: dict[str, str], settings: dict[str, str]
    ) -> None:
        if "defaultaccount" in settings:
            for name in names:
                self._require((settings["defaultaccount"], name) in self.members, "a member")
                self.defaults[name] = settings["defaultaccount"]
            return
        self._set(self.members, [(where["account"], name) for name in names], settings)

    def _remove_user(self, names: list[str], where: dict[str, str], _: dict[str, str]) -> None:
        for name in names:
            if "account" in where:
                self._require(self.defaults[name] != where["account"], "it is not the default one")
                del self.members[where["account"], name]
                continue
            for key in [key for key in self.members if key[1] == name]:
                del self.members[key]
            del self.defaults[name]

    def _set(self, records: dict, names: list, settings: dict[str, str]) -> None:  # type: ignore[type-arg]
        for name in names:
            self._require(name in records, f"{name} is there")
            record = records[name]
            for key, value in settings.items():
                self._known(key, value)
                cleared = value in {"", "-1", "gres/gpu=-1"}
                new = None if cleared else value
                self._require(record.get(key, _DEFAULTS.get(key)) != new, f"{key} changes")
                if new is None:
                    record.pop(key, None)
                else:
                    record[key] = new

    def _known(self, key: str, value: str) -> None:
        """Refuse what names something that isn't there."""
        if key == "parent":
            self._require(value in self.accounts, f"account {value} is there")
        if key in {"qos", "preempt"} or (key == "defaultqos" and value != "-1"):
            for name in filter(None, value.split(",")):
                self._require(name in self.qos, f"QOS {name} is there")

    def _check_defaults(self) -> None:
        """Refuse what leaves an association with a default QOS that it may not use."""
        for name, one in self.accounts.items():
            self._check_default(name, one)
        for (account, _), one in self.members.items():
            self._check_default(account, one)

    def _check_default(self, account: str, one: dict[str, str]) -> None:
        qos, default = one.get("qos", ""), one.get("defaultqos", "")
        here = account
        while here:
            qos = qos or self.accounts[here].get("qos", "")
            default = default or self.accounts[here].get("defaultqos", "")
            here = self.accounts[here].get("parent", "")
        allowed = (qos or "normal").split(",")
        self._require(not default or default in allowed, f"{account}: {default} of {qos}")

    @staticmethod
    def _require(holds: bool, what: str) -> None:
        if not holds:
            raise RefusedError(what)


_DEFAULTS = {"priority": "0", "gracetime": "0", "preemptmode": "cluster", "fairshare": "1"}


def _limits(one: dict[str, str]) -> str:
    columns = (
        one.get("fairshare", "1"),
        *(one.get(k, "") for k in ("grptres", "qos", "defaultqos")),
    )
    return "|".join(columns)


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 86400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{clock}" if days else clock
