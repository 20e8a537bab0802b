"""Who publishes a release, what it is called and what readers may do with it: public words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tallyveil.errors import ArgumentError
from tallyveil.request.fields import read_text, refusal
from tallyveil.request.options import ReleaseOptions
from tallyveil.untrusted import escape_controls

__all__ = ["About", "check_about"]

LONGEST = 300
"""Characters of each of the words."""


@dataclass(frozen=True)
class About:
    """What the publisher says of a release; what was not said is empty."""

    title: str = ""
    publisher: str = ""
    contact: str = ""
    period: str = ""
    licence: str = ""

    def to_dict(self) -> dict[str, str]:
        """JSON-ready: only what was said."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: words for name, words in found.items() if words}

    @classmethod
    def from_dict(cls, data: Any) -> About:
        """The record that `to_dict` wrote."""
        if not isinstance(data, Mapping) or not data:
            raise refusal("words about the release")
        made = cls(**{str(name): _read(words) for name, words in data.items()})
        if made.to_dict() != dict(data):
            raise refusal("words about the release")
        return made

    @property
    def lines(self) -> tuple[str, ...]:
        """Sentences for a page, the title apart."""
        told = (
            ("Period", self.period),
            ("Published by", self.publisher),
            ("Contact", self.contact),
            ("Licence", self.licence),
        )
        return tuple(f"{name}: {words}" for name, words in told if words)

    def describe_package(self) -> dict[str, Any]:
        """What a Frictionless data package says of it."""
        package: dict[str, Any] = {"title": self.title} if self.title else {}
        if self.publisher or self.contact:
            who = {"title": self.publisher or self.contact, "role": "publisher"}
            contributor = {**who, **({"contact": self.contact} if self.contact else {})}
            package["contributors"] = [contributor]
        if self.licence:
            package["licenses"] = [{"name": self.licence, "title": self.licence}]
        if self.period:
            package["period"] = self.period
        return package


def check_about(options: ReleaseOptions) -> About:
    """The words about the release, each one line of text."""
    found = {}
    for field in fields(About):
        given = getattr(options, field.name)
        if given is None:
            continue
        is_text = isinstance(given, str) and given.strip() and given == escape_controls(given)
        if not is_text or len(given) > LONGEST:
            rule = f"be one line of text, of at most {LONGEST} characters"
            raise ArgumentError(field.name, rule, given)
        found[field.name] = given.strip()
    return About(**found)


def _read(words: Any) -> str:
    text = read_text(words)
    if not text.strip() or text != escape_controls(text) or len(text) > LONGEST:
        raise refusal("one line of text")
    return text
