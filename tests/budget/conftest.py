"""Every store in turn: a SQLite file, and a database on a PostgreSQL server of our own."""

import multiprocessing
from fractions import Fraction

import pytest

from tallyveil.budget.entries import Debit, Stage
from tallyveil.budget.ledger import Ledger
from tallyveil.errors import LedgerError
from tests.budget import server as server_module


def spend(*epsilons, delta=0, request=""):
    """A debit of a stage for every epsilon."""
    stages = tuple(Stage(f"stage {at}", Fraction(e)) for at, e in enumerate(epsilons))
    return Debit(("n",), stages, Fraction(delta), request=request)


def _ask(place, debit, start, answers):
    start.wait()
    try:
        Ledger(place).debit("cases", debit)
        answers.put("spent")
    except LedgerError as refusal:
        answers.put(str(refusal))


def ask_at_once(place, debit, processes):
    """What as many processes are told that ask for the same debit at the same moment."""
    context = multiprocessing.get_context("fork")
    start, answers = context.Event(), context.Queue()
    arguments = (place, debit, start, answers)
    workers = [context.Process(target=_ask, args=arguments) for _ in range(processes)]
    for worker in workers:
        worker.start()
    start.set()
    told = [answers.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join()
    return told


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
