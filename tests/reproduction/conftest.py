"""The fixture that runs an experiment quickly."""

from functools import cache

import pytest

from reproduction.experiment import Context
from reproduction.run import list_experiments


@pytest.fixture(scope="session")
def run_quickly():
    """Run an experiment by its id, quickly; its findings by claim, none of them unexplained."""
    by_id = {experiment.id: experiment for experiment in list_experiments()}

    @cache
    def run(name):
        result = by_id[name].run(Context(quick=True))
        assert result.verdict != "unexplained", result.verdict_line
        assert result.findings
        assert all(table.rows for table in result.tables.values())
        return {finding.claim: finding for finding in result.findings}

    return run
