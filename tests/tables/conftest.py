"""The same table in every kind of source."""

import pytest

from tests.attacks.engines import ENGINES


@pytest.fixture(params=ENGINES)
def build(request, tmp_path):
    """Build the source of a table from columns, and the options that say how it is read."""

    def make(columns):
        source = ENGINES[request.param](columns, tmp_path / "table")
        return source if isinstance(source, tuple) else (source, {})

    return make
