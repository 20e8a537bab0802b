"""Every store in turn: a SQLite file, and a database on a PostgreSQL server of our own."""

import pytest

from tallyveil.budget.ledger import Ledger
from tests.budget import server as server_module


@pytest.fixture(scope="session")
def server():
    server_module.require_server()
    running = server_module.Server()
    yield running
    running.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a new ledger can be made."""
    if request.param == "sqlite":
        return str(tmp_path / "budget.db")
    server = request.getfixturevalue("server")
    return server.address(server.new_database())


@pytest.fixture
def ledger(place):
    book = Ledger.create(place)
    book.open("cases", 1, "1e-6")
    return book
