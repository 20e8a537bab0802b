"""Mechanism and certificate files of a release, each written once."""

from __future__ import annotations

import re

from tallyveil.documents.stages import StageRecord
from tallyveil.release.methods.base import PlannedStage

__all__ = ["ProofFiles"]


class ProofFiles:
    """Mechanism and certificate files by name; equal ones share one file."""

    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self._suffixes: dict[str, str] = {}
        self._numbers: dict[str, int] = {}

    def add(self, stage: PlannedStage) -> StageRecord:
        """Keep the files of a stage and describe them."""
        kind = "" if stage.kind == "counts" else "-" + re.sub("[^A-Za-z0-9]+", "-", stage.kind)
        if stage.sha256 not in self._suffixes:
            number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
            self._suffixes[stage.sha256] = kind + (f"-{number}" if number > 1 else "")
        suffix = self._suffixes[stage.sha256]
        file, certificate_file = f"mechanism{suffix}.json", f"certificate{suffix}.json"
        self.content[file] = stage.mechanism_bytes
        self.content[certificate_file] = stage.certificate_bytes
        certificate = stage.certified.certificate
        return StageRecord(
            stage.name,
            stage.epsilon,
            file,
            stage.sha256,
            stage.certified.name,
            stage.certified.exact_epsilon,
            certificate_file,
            certificate["digest"],
            certificate["achieved_epsilon"],
            stage.certified.exact_delta,
        )
