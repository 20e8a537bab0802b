"""A real PostgreSQL server in a temporary folder, run by an account that may run one."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

NEED = "TALLYVEIL_NEED_SERVERS"
"""Set where a missing server is a failure and not a reason to skip, as in `.ci/run`."""


def find_programs():
    """The folder of initdb and postgres, or None."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    found = shutil.which("initdb")
    places += [Path(found).parent] if found else []
    return next((place for place in places if (place / "initdb").exists()), None)


def find_missing():
    """What keeps this machine from running a server, in one line, or None."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is missing: pip install 'tallyveil[postgresql]'"
    if find_programs() is None:
        return "PostgreSQL is missing: install Debian's package postgresql"
    if os.getuid() == 0 and (shutil.which("runuser") is None or _account() is None):
        return "root cannot run PostgreSQL, and there is no account 'postgres' to run it as"
    return None


def require_server():
    missing = find_missing()
    if missing is not None:
        (pytest.fail if os.environ.get(NEED) else pytest.skip)(missing)


def _account():
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return None


class Server:
    """One cluster: its socket, its port, and ways to stop it gently or not."""

    password = "Passw0rd-of-the-owner"

    def __init__(self):
        self.programs = find_programs()
        self.root = Path(tempfile.mkdtemp(prefix="tv-pg-", dir="/tmp"))
        self.data = self.root / "data"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (self.root / "password").write_text(self.password)
        if os.getuid() == 0:
            account = _account()
            for path in (self.root, self.root / "password"):
                os.chown(path, account.pw_uid, account.pw_gid)
        self._run("initdb", "-D", self.data, "-U", "owner", "--no-sync", "-E", "UTF8",
                  "--auth-local=trust", "--auth-host=scram-sha-256",
                  f"--pwfile={self.root / 'password'}")  # fmt: skip
        self.start()

    def _command(self, program, *words):
        command = [str(self.programs / program), *map(str, words)]
        return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else command

    def _run(self, program, *words):
        done = subprocess.run(
            self._command(program, *words), cwd="/", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, **settings):
        given = {"port": self.port, "unix_socket_directories": self.root, **settings}
        options = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
        with (self.root / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command("postgres", "-D", self.data, *options), cwd="/",
                stdout=subprocess.DEVNULL, stderr=log, start_new_session=True,
            )  # fmt: skip
        self.wait()

    def wait(self):
        import psycopg

        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.address("postgres")).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, (self.root / "log").read_text()[-2000:]
                time.sleep(0.05)

    def kill(self):
        """End the server as a power cut would end it: nobody gets to tidy up."""
        leader = int((self.data / "postmaster.pid").read_text().split()[0])
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(leader)],
                                capture_output=True, text=True, check=False).stdout  # fmt: skip
        for number in (leader, *map(int, listed.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.root, ignore_errors=True)

    def address(self, database, user="owner"):
        return f"postgresql://{user}@/{database}?host={self.root}&port={self.port}"

    def network_address(self, database, user="owner", password=password):
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def execute(self, database, *statements, user="owner"):
        """Run statements one by one; return the rows of the last."""
        import psycopg

        with psycopg.connect(self.address(database, user), autocommit=True) as connection:
            for statement in statements:
                found = connection.execute(statement)
            return found.fetchall() if found.description else []

    def new_database(self):
        """The name of a database without a ledger: the same one, emptied."""
        self.execute("postgres", "DROP SCHEMA IF EXISTS tallyveil CASCADE")
        return "postgres"
