"""A ledger on a PostgreSQL server, addresses of databases, and the secrets in them.

Passwords come from the address, from PGPASSWORD or from a pgpass file; none is ever shown,
logged or written. `tallyveil.passwords` hides them in texts. Only this module imports psycopg.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

from tallyveil.budget.entries import FIRST, StoreTransaction
from tallyveil.errors import LedgerError, MissingExtraError
from tallyveil.passwords import HIDDEN, is_secret

SCHEMES = ("postgresql", "postgres")
NOT_SHOWN = "It is not shown, because it may hold a password."
KEEP_PASSWORDS = "Keep passwords in PGPASSWORD or a pgpass file."
FOREIGN = re.compile(r"(?:[a-z][a-z0-9+.\-]++:)+/|[^\s/:@]+:[^\s@]*@", re.IGNORECASE)
"""The scheme of an address (drives of Windows have one letter), or USER:PASSWORD@."""

KEYS = (
    *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "sslmode", "server"),
    *("database", "uid", "driver", "dsn", "data source", "user id", "initial catalog"),
)
PAIR = re.compile(r"(?:^|[\s;])([a-z_][\w%]*(?: (?:source|id|catalog))?)\s*=", re.IGNORECASE)
"""The name of a parameter in a connection string, at its start or after a space or semicolon."""


def is_address(location: str) -> bool:
    """Return True if a ledger's location is a server address and not a file.

    >>> is_address("postgresql://db.example/budgets"), is_address("budget.db")
    (True, False)
    """
    return location.partition("://")[0].lower() in SCHEMES and "://" in location


def is_unknown_address(place: str | Path) -> bool:
    """Return True if a supposed file does not exist and looks like an address.

    That is a scheme, as in ``mysql://``, or a connection string, as in ``host=db password=...``.
    An existing file is a file under any name.

    >>> is_unknown_address("postgresql+psycopg://db/x"), is_unknown_address("host=db user=ann")
    (True, True)
    >>> is_unknown_address("a=b.csv"), is_unknown_address("year=2020/user=1.csv")
    (False, False)
    """
    text = str(place)
    if os.path.exists(text):
        return False
    if FOREIGN.match(text):
        return True
    names = [name.lower() for name in PAIR.findall(text)]
    keys = [name for name in names if name in KEYS]
    return any(map(is_secret, names)) or len(keys) > 1 or text.partition("=")[0] == "host"


def find_secrets(address: str) -> set[str]:
    """Return every spelling of every password in an address; refuse ambiguous addresses."""
    _, _, rest = address.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if rest.count("@") > 1 or ("@" in rest and "@" not in authority):
        raise LedgerError(
            "The ledger's address cannot be read. In a password, / ? # @ : and % are written as "
            "%2F %3F %23 %40 %3A and %25; better leave it out and use PGPASSWORD or a pgpass file."
        )
    user, separator, _ = authority.partition("@")
    written = {user.partition(":")[2]} if separator else set()
    query = rest.partition("?")[2].partition("#")[0]
    parts = (part.partition("=") for part in query.split("&"))
    written |= {value for name, _, value in parts if is_secret(name)}
    written |= {value for name, value in parse_qsl(query) if is_secret(name)}
    return {spelling for text in written for spelling in (text, unquote(text)) if spelling}


def remove_secrets(text: str, secrets: set[str]) -> str:
    """Replace every secret in `text` by stars, longest first."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


PATIENCE = 120.0  # seconds a process waits for its turn before it gives up, spending nothing
CONNECT_SECONDS = 15
TRY_AGAIN = ("40001", "40P01")  # not serializable, deadlock: the server wants the work repeated
BUSY = ("55P03", "57014")
MISSING = ("3F000", "42P01")
NOT_ALLOWED = "42501"
LONGEST_REASON = 300
RAISED = "P0001"  # by the triggers below

FORMAT = 1

SCHEMA = """
CREATE SCHEMA tallyveil;
CREATE TABLE tallyveil.format (version integer NOT NULL);
CREATE TABLE tallyveil.entries (
    sequence bigint PRIMARY KEY,
    dataset text NOT NULL,
    kind text NOT NULL,
    body text NOT NULL,
    previous text NOT NULL,
    digest text NOT NULL UNIQUE
);
CREATE TABLE tallyveil.head (
    one integer PRIMARY KEY CHECK (one = 1), length bigint NOT NULL, digest text NOT NULL
);
CREATE FUNCTION tallyveil.refuse() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
BEGIN
    RAISE EXCEPTION 'ledger entries are never changed or removed';
END $$;
CREATE FUNCTION tallyveil.check_entry() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last tallyveil.head;
    owner oid := (SELECT relowner FROM pg_catalog.pg_class WHERE oid = TG_RELID);
BEGIN
    SELECT * INTO STRICT last FROM tallyveil.head;
    IF NEW.sequence <> last.length + 1 OR NEW.previous <> last.digest THEN
        RAISE EXCEPTION 'a ledger entry follows the last one';
    END IF;
    IF NEW.kind <> 'debit' AND NOT pg_has_role(session_user, owner, 'MEMBER') THEN
        RAISE EXCEPTION 'only the owner of a ledger opens and closes datasets';
    END IF;
    IF (NEW.body::jsonb ->> 'who') IS DISTINCT FROM session_user::text THEN
        RAISE EXCEPTION 'a ledger entry names the account that made it';
    END IF;
    IF octet_length(NEW.body) > 1000000 OR octet_length(NEW.dataset) > 10000 THEN
        RAISE EXCEPTION 'a ledger entry is too long';
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION tallyveil.check_head() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.length <> OLD.length + 1 OR NEW.digest IS DISTINCT FROM
        (SELECT digest FROM tallyveil.entries WHERE sequence = NEW.length) THEN
        RAISE EXCEPTION 'the head of a ledger names its last entry';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER entries_follow BEFORE INSERT ON tallyveil.entries
    FOR EACH ROW EXECUTE FUNCTION tallyveil.check_entry();
CREATE TRIGGER entries_stay BEFORE UPDATE OR DELETE ON tallyveil.entries
    FOR EACH ROW EXECUTE FUNCTION tallyveil.refuse();
CREATE TRIGGER entries_remain BEFORE TRUNCATE ON tallyveil.entries
    FOR EACH STATEMENT EXECUTE FUNCTION tallyveil.refuse();
CREATE TRIGGER head_grows BEFORE UPDATE ON tallyveil.head
    FOR EACH ROW EXECUTE FUNCTION tallyveil.check_head();
CREATE TRIGGER head_stays BEFORE DELETE ON tallyveil.head
    FOR EACH ROW EXECUTE FUNCTION tallyveil.refuse();
CREATE TRIGGER head_remains BEFORE TRUNCATE ON tallyveil.head
    FOR EACH STATEMENT EXECUTE FUNCTION tallyveil.refuse();
"""
"""The tables of a ledger, and functions that refuse edits.

Functions look names up in `pg_catalog` first, so that temporary tables and types of a session
cannot pass for the server's own.
"""

SCHEMA_DIGEST = "852861a7bec5ebd0292238d42f991e8cff2f5046d01f6fa0336f8900602bb0a6"
"""The SHA-256 of what `DESCRIBE` finds in an unaltered ledger."""

DESCRIBE = """
WITH ours AS (
    SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'tallyveil'
)
SELECT concat_ws(' ', 'relation', relname, relkind, relpersistence, relrowsecurity,
        relforcerowsecurity) FROM ours
UNION ALL SELECT concat_ws(' ', 'column', relname, attname, format_type(atttypid, atttypmod),
        attnotnull, atthasdef, attgenerated,
        (SELECT collname FROM pg_collation l WHERE l.oid = attcollation))
    FROM ours JOIN pg_attribute ON attrelid = ours.oid
    WHERE attnum > 0 AND NOT attisdropped AND relkind <> 'i'
UNION ALL SELECT concat_ws(' ', 'constraint', relname, conname, contype,
        pg_get_constraintdef(k.oid))
    FROM ours JOIN pg_constraint k ON conrelid = ours.oid WHERE contype <> 'n'
UNION ALL SELECT concat_ws(' ', 'trigger', relname, tgname, tgenabled, pg_get_triggerdef(t.oid))
    FROM ours JOIN pg_trigger t ON tgrelid = ours.oid WHERE NOT tgisinternal
UNION ALL SELECT concat_ws(' ', 'function', proname, md5(prosrc), prosecdef, proconfig::text,
        lanname)
    FROM pg_proc JOIN pg_namespace n ON n.oid = pronamespace JOIN pg_language g ON g.oid = prolang
    WHERE nspname = 'tallyveil'
UNION ALL SELECT concat_ws(' ', 'rule', relname, rulename)
    FROM ours JOIN pg_rewrite ON ev_class = ours.oid
UNION ALL SELECT concat_ws(' ', 'policy', relname, polname)
    FROM ours JOIN pg_policy ON polrelid = ours.oid
UNION ALL SELECT concat_ws(' ', 'child', relname)
    FROM ours JOIN pg_inherits ON inhparent = ours.oid WHERE relkind <> 'i'
"""

Result = TypeVar("Result")


class PostgresqlStore:
    """A chain in the schema ``tallyveil`` of a database, safe for many processes on any machine.

    A write is a serializable transaction that takes a lock before it reads, so what it decided
    on cannot have changed meanwhile; it is repeated where the server asks for that, and counts
    once the server has confirmed that it is on disk. A server that does not force its writes
    to disk is refused.
    """

    def __init__(self, address: str) -> None:
        self._secrets = find_secrets(address)
        self._parameters = _read_address(address)
        self.name = _describe_address(self._parameters)

    def __getstate__(self) -> dict[str, Any]:
        """Refuse to pickle a password, which would end up in a file or pipe.

        Without it a copy would fail somewhere else, or connect as somebody else.
        """
        if self._secrets:
            raise LedgerError(
                "A ledger whose address holds a password is not pickled: leave the password out "
                "of the address. " + KEEP_PASSWORDS
            )
        return self.__dict__

    def __copy__(self) -> PostgresqlStore:
        return self

    def __deepcopy__(self, memo: object) -> PostgresqlStore:
        return self  # it never changes

    def create(self) -> None:
        """Create the tables, or accept an existing ledger."""
        with self._connected() as connection, self._in_words():
            connection.execute("BEGIN")
            connection.execute("SELECT pg_advisory_xact_lock(hashtext('tallyveil ledger'))")
            if _read_one(connection, "SELECT to_regclass('tallyveil.format') IS NOT NULL"):
                self._require_ledger(connection)
                return
            connection.execute(SCHEMA)
            connection.execute("INSERT INTO tallyveil.format VALUES (%s)", (FORMAT,))
            connection.execute("INSERT INTO tallyveil.head VALUES (1, 0, %s)", (FIRST,))
            connection.execute("COMMIT")

    def read(self, work: Callable[[StoreTransaction], Result]) -> Result:
        """Run `work` on a consistent read-only view."""
        with self._connected() as connection, self._in_words():
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._require_ledger(connection)
            return work(_view(connection))

    def write(self, work: Callable[[StoreTransaction], Result]) -> Result:
        """Run `work` with the exclusive right to append, durable once this returns."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                with self._connected() as connection:
                    return self._write_once(connection, work)
            except _TryAgainError:
                if time.monotonic() > deadline:
                    raise self._busy() from None
                time.sleep(0.01 + os.getpid() % 19 / 100)  # not all at the same moment

    def _write_once(self, connection: Any, work: Callable[[StoreTransaction], Result]) -> Result:
        with self._in_words():
            connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
            # before anything is read: the view begins after the turn has come
            connection.execute(f"SET LOCAL lock_timeout = {int(PATIENCE * 1000)}")
            connection.execute("LOCK TABLE tallyveil.head IN SHARE ROW EXCLUSIVE MODE")
            self._require_ledger(connection)
            self._require_durable(connection)
            done = work(_view(connection))
        with self._in_words(committing=True):
            connection.execute("COMMIT")
        return done

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """Open a connection in autocommit mode; uncommitted work is undone when it ends."""
        try:
            import psycopg
        except ImportError as missing:
            raise MissingExtraError("psycopg", "postgresql") from missing

        with self._in_words():
            connection = psycopg.connect(
                autocommit=True, prepare_threshold=None, **self._parameters
            )
        try:
            with self._in_words():  # no function or type of another schema is ever called
                connection.execute("SET search_path = pg_catalog, pg_temp")
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _in_words(self, committing: bool = False) -> Iterator[None]:
        """Turn database errors into `LedgerError`, without passwords and without their cause."""
        import psycopg

        try:
            yield
            return
        except psycopg.Error as problem:
            state, message = problem.sqlstate, problem.diag.message_primary or str(problem)
        if state in TRY_AGAIN:
            raise _TryAgainError
        raise self._explain(state, message, committing) from None

    def _explain(self, state: str | None, message: str, committing: bool) -> LedgerError:
        if state in BUSY:
            return self._busy()
        if state in MISSING:
            return LedgerError(
                f"There is no ledger at {self.name}. Make one with: tallyveil ledger init "
                "--ledger ADDRESS --dataset NAME --epsilon TOTAL"
            )
        if state == NOT_ALLOWED:
            return LedgerError(
                f"This account may not do that in the ledger {self.name}; its owner can grant it. "
                "Nothing was spent."
            )
        lines = remove_secrets(message, self._secrets).strip().splitlines() or ["no reason given"]
        reason = lines[0][:LONGEST_REASON].rstrip(".")
        if committing and state != RAISED:
            return LedgerError(
                f"The ledger {self.name} did not answer when the entry was to be made final: "
                f"{reason}. It may have been spent, and nothing was drawn; look with: tallyveil "
                "ledger history."
            )
        return LedgerError(f"The ledger {self.name} cannot be used: {reason}. Nothing was spent.")

    def _busy(self) -> LedgerError:
        return LedgerError(
            f"The ledger {self.name} stayed busy for {PATIENCE:.0f} s. Nothing was spent."
        )

    def _require_ledger(self, connection: Any) -> None:
        """Refuse a schema of another format, or one that was altered."""
        version = _read_one(connection, "SELECT max(version) FROM tallyveil.format")
        if version != FORMAT:
            raise LedgerError(
                f"{self.name} is a ledger of format {version}; this program uses format {FORMAT}. "
                "Nothing was spent."
            )
        if describe_schema(connection) != SCHEMA_DIGEST:
            raise LedgerError(
                f"The tables of the ledger {self.name} were altered: something in the schema "
                "tallyveil does not belong there, is missing, or was changed. Nothing was spent."
            )

    def _require_durable(self, connection: Any) -> None:
        if _read_one(connection, "SELECT current_setting('fsync')") != "on":
            raise LedgerError(
                f"The server of the ledger {self.name} runs with fsync off, so a crash could lose "
                "what was spent. Nothing was spent."
            )
        if _read_one(connection, "SELECT current_setting('synchronous_commit')") in (
            "off",
            "local",
        ):
            connection.execute("SET LOCAL synchronous_commit = on")


class _TryAgainError(Exception):
    """Raised when the server wants the transaction repeated; nothing of it was kept."""


def _view(connection: Any) -> StoreTransaction:
    def who() -> str:
        return str(_read_one(connection, "SELECT session_user"))

    return StoreTransaction(connection, who, "tallyveil.", "%s")


def describe_schema(connection: Any) -> str:
    """Return the SHA-256 of all tables, columns, triggers, functions and rules of the schema."""
    lines = sorted(row[0] for row in connection.execute(DESCRIBE))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _read_one(connection: Any, query: str) -> Any:
    return connection.execute(query).fetchone()[0]


def _read_address(address: str) -> dict[str, Any]:
    """Return the parts of an address as libpq reads it; its messages may quote a password."""
    try:
        from psycopg import Error
        from psycopg.conninfo import conninfo_to_dict
    except ImportError as missing:
        raise MissingExtraError("psycopg", "postgresql") from missing
    try:
        parts = conninfo_to_dict(address)
    except Error:
        raise LedgerError(
            "The ledger's address cannot be read. It has the form "
            "postgresql://USER@HOST:PORT/DATABASE."
        ) from None
    defaults = {"connect_timeout": CONNECT_SECONDS, "application_name": "tallyveil"}
    return {**defaults, **parts, "client_encoding": "utf8"}


def _describe_address(parts: dict[str, Any]) -> str:
    """Return the location of the ledger, without any password."""
    user, port = parts.get("user"), parts.get("port")
    host = parts.get("host") or parts.get("hostaddr") or ""
    place = f"{user}@{host}" if user else f"{host}"
    return f"postgresql://{place}{f':{port}' if port else ''}/{parts.get('dbname') or ''}"
