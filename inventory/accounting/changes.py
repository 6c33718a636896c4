"""One change of the accounting database: a `sacctmgr` command, and what it does in words."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

Verb: TypeAlias = Literal["add", "modify", "remove"]
Entity: TypeAlias = Literal["qos", "account", "user"]

SACCTMGR = ("sacctmgr", "--immediate", "--quiet")
"""Asks nothing and prints errors only."""


class AccountingChange(msgspec.Struct, frozen=True, kw_only=True):
    """One command. Whoever runs several stops at the first that fails: the next run goes on."""

    verb: Verb
    entity: Entity
    names: tuple[str, ...]
    """What is changed; several users at once, as sacctmgr takes them."""
    where: tuple[tuple[str, str], ...] = ()
    """Further conditions: cluster, account, partition."""
    settings: tuple[tuple[str, str], ...] = ()
    """Keys and values as sacctmgr writes them; -1 and "" take a limit away."""
    words: str
    """For the plan: one clause without a full stop."""

    @property
    def command(self) -> tuple[str, ...]:
        """The words to run, each one argument: no shell comes between."""
        names = f"name={','.join(self.names)}"
        conditions = [f"{key}={value}" for key, value in self.where]
        settings = [f"{key}={value}" for key, value in self.settings]
        if self.verb == "add":
            return (*SACCTMGR, "add", self.entity, names, *conditions, *settings)
        if self.verb == "remove":
            return (*SACCTMGR, "remove", self.entity, "where", names, *conditions)
        head = (*SACCTMGR, "modify", self.entity, "where", names, *conditions)
        return (*head, "set", *settings)


class HeldBack(msgspec.Struct, frozen=True, kw_only=True):
    """A removal that waits, because jobs would lose what they run under."""

    what: str
    """Such as: user ada of account nlp."""
    reason: str
    """Such as: 2 jobs."""

    @property
    def words(self) -> str:
        """For the plan."""
        return f"keep {self.what} until a later run: {self.reason}"
