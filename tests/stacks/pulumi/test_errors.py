"""Refusals of clouds are told by resource, cause and next step, and their words are kept."""

from pathlib import Path

import msgspec
import pytest

from gcluster.schemas.codes import register
from gcluster.stacks.pulumi.engine.events import NO_CAPACITY, cause, translate


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """A message that was seen, and what must be made of it."""

    name: str
    text: str
    code: str
    says: str = ""
    hint: str = ""
    source: str = ""
    synthetic: bool = False


MESSAGES = msgspec.yaml.decode(
    (Path(__file__).parent / "messages.yaml").read_bytes(), type=list[Message]
)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.name)
def test_a_refusal_is_understood(message: Message) -> None:
    assert bool(message.source) is not message.synthetic, "each message says where it was seen"
    found = translate(message.text, resource="Instance gpu-0")
    assert found.code == message.code
    assert found.summary.startswith("Instance gpu-0: ")
    assert message.says in found.summary
    assert "\n" not in found.summary
    assert found.detail == message.text.strip()
    assert found.hint
    assert message.hint in found.hint


def test_every_cause_has_a_message_and_a_registered_code() -> None:
    seen = {message.code for message in MESSAGES}
    assert seen == {f"GC96{n}" for n in range(7)} - {"GC965"}
    assert seen <= register().keys()


def test_the_cause_can_be_asked_for() -> None:
    found = {cause(translate(message.text)) for message in MESSAGES}
    assert found == {"locked", "expired", "capacity", "quota", "permission", "other"}
    assert translate("AllocationFailed").code == NO_CAPACITY


@pytest.mark.parametrize("text", ["", "  \n", "error: update failed"])
def test_a_message_that_says_nothing_is_still_a_finding(text: str) -> None:
    assert translate(text).summary.startswith("the cloud refused: ")
