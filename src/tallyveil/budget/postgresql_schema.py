"""The tables of a ledger on a PostgreSQL server, and how an altered one is recognized."""

from __future__ import annotations

import hashlib
from typing import Any

__all__ = ["MIGRATIONS", "SCHEMA_DIGESTS", "describe_schema"]

MIGRATIONS = (
    """
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
SET search_path = pg_catalog AS $$
DECLARE
    last tallyveil.head;
    owner oid := (SELECT relowner FROM pg_class WHERE oid = TG_RELID);
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
    RETURN NEW;
END $$;
CREATE FUNCTION tallyveil.check_head() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog AS $$
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
""",
    """
CREATE OR REPLACE FUNCTION tallyveil.check_entry() RETURNS trigger LANGUAGE plpgsql
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
CREATE OR REPLACE FUNCTION tallyveil.check_head() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.length <> OLD.length + 1 OR NEW.digest IS DISTINCT FROM
        (SELECT digest FROM tallyveil.entries WHERE sequence = NEW.length) THEN
        RAISE EXCEPTION 'the head of a ledger names its last entry';
    END IF;
    RETURN NEW;
END $$;
""",
)
"""The statements that lead from each format to the next; the newest format is their number.

Format 2: temporary tables and types of a session cannot pass for the server's own, and an entry
has a length.
"""

SCHEMA_DIGESTS = (
    "8e70d76eef69795864c8e37c2f8db69399f686dc9675e52455c2c8c70f3efa6d",
    "852861a7bec5ebd0292238d42f991e8cff2f5046d01f6fa0336f8900602bb0a6",
)
"""For each format, the SHA-256 of what `DESCRIBE` finds."""

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


def describe_schema(connection: Any) -> str:
    """SHA-256 of every table, column, trigger, function and rule of the ledger's schema."""
    lines = sorted(row[0] for row in connection.execute(DESCRIBE))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
