"""What the tests of the papers share."""

import pytest

from tallyveil.papers.harness.experiment import Context
from tallyveil.papers.harness.registry import list_experiments


@pytest.fixture(scope="session")
def run_quickly():
    """Run an experiment by its id, quickly; its findings by claim, none of them unexplained."""
    by_id = {experiment.id: experiment for experiment in list_experiments()}

    def run(name):
        found = by_id[name].run(Context(quick=True))
        assert found.verdict != "unexplained", found.verdict_line
        assert found.findings
        assert all(table.rows for table in found.tables.values())
        return {finding.claim: finding for finding in found.findings}

    return run
