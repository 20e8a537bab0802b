"""Encrypt what one step of a release leaves on a disk for the next.

The key is new for every release and is never stored. What a step that was killed, repeated or
overtaken leaves behind is then random bytes to everybody, whoever may read the disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tallyveil.sampling.entropy import Entropy

__all__ = ["ReleaseSeal"]

KEY_BYTES, NONCE_BYTES = 32, 12


@dataclass(frozen=True)
class ReleaseSeal:
    """AES-256-GCM under one key, with a new nonce for every piece.

    >>> seal = ReleaseSeal.fresh()
    >>> seal.open(seal.close(b"draws")), seal
    (b'draws', ReleaseSeal())
    """

    key: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> ReleaseSeal:
        """A seal with a new key."""
        return cls(Entropy().octets(KEY_BYTES).tobytes())

    def close(self, content: bytes | memoryview) -> bytes:
        """Encrypt."""
        nonce = Entropy().octets(NONCE_BYTES).tobytes()
        sealed: bytes = self._cipher.encrypt(nonce, content, None)
        return nonce + sealed

    def open(self, content: bytes) -> bytes:
        """Decrypt, or raise if it is not what was encrypted."""
        sealed = memoryview(content)[NONCE_BYTES:]
        found: bytes = self._cipher.decrypt(content[:NONCE_BYTES], sealed, None)
        return found

    @property
    def _cipher(self) -> Any:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self.key)
