"""How the file of a table is written and how the release is, as the publisher declares it."""

from __future__ import annotations

from tallyveil.errors import UsageError
from tallyveil.request.arguments import list_given, require_one_of
from tallyveil.request.options import ReleaseOptions
from tallyveil.tables.form import Form
from tallyveil.tables.write import FORMATS

__all__ = ["check_form"]


def check_form(options: ReleaseOptions, microdata: bool) -> tuple[Form, str | None]:
    """The declared form of the file, and the format of the release (None: as it came)."""
    missing = tuple(str(code).strip() for code in list_given(options.missing))
    if missing and microdata:
        raise UsageError(
            "'missing' is for columns of counts: in microdata, list such a code among the "
            "categories, or use 'other'."
        )
    form = Form(
        options.delimiter,
        options.encoding,
        options.sheet,
        options.skip_rows,
        options.skip_footer,
        options.comment,
        options.thousands,
        options.decimal,
        missing,
        options.query,
    )
    if options.format is not None:
        require_one_of("format", str(options.format), FORMATS)
    return form, None if options.format is None else str(options.format)
