"""Write the list of public names (docs/api.md) and the type stub from the package itself.

Run: python docs/generate_api.py
"""

import inspect
from pathlib import Path

import tallyveil as tv

ROOT = Path(__file__).parents[1]
HEADINGS = {
    "query": "Queries and mechanisms",
    "loss": "Queries and mechanisms",
    "mechanism": "Queries and mechanisms",
    "closed_form": "Closed forms",
    "certify": "Certify and release",
    "release": "Certify and release",
    "design": "Design",
    "preserve": "Preserving distributions",
    "consume": "Consumers",
    "distribution": "Preserving distributions",
    "table": "Tables",
    "evaluate": "Comparing",
    "report": "Reports",
    "errors": "Errors",
}


def api_page() -> str:
    """Every public name under its heading, with the first sentence of its docstring."""
    sections: dict[str, list[str]] = {heading: [] for heading in HEADINGS.values()}
    for module, names in tv._HOMES.items():
        heading = HEADINGS[module.split(".")[1]]
        for name in names:
            summary = (inspect.getdoc(getattr(tv, name)) or "").split("\n\n")[0]
            sections[heading].append(f"- `tv.{name}`: {' '.join(summary.split())}")
    lines = [
        "# Public names",
        "",
        "Written by `python docs/generate_api.py`; a test keeps it true.",
    ]
    for heading, entries in sections.items():
        if entries:
            lines += ["", f"## {heading}", "", *sorted(entries, key=str.lower)]
    lines += ["", "## Modules", ""]
    for name in sorted(tv._MODULES):
        summary = (inspect.getdoc(getattr(tv, name)) or "").split("\n\n")[0]
        lines.append(f"- `tv.{name}`: {' '.join(summary.split())}")
    return "\n".join(lines) + "\n"


def stub() -> str:
    """What type checkers see of the lazily loaded package."""
    lines = ["# Written by docs/generate_api.py; a test keeps it in step.", ""]
    lines.append("from tallyveil._version import __version__ as __version__")
    for module, names in sorted(tv._HOMES.items()):
        lines += [f"from {module} import {name} as {name}" for name in sorted(names)]
    for name, module in sorted(tv._MODULES.items()):
        package, _, last = module.rpartition(".")
        lines.append(f"from {package} import {last} as {name}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "api.md").write_text(api_page(), encoding="utf-8")
    (ROOT / "src" / "tallyveil" / "__init__.pyi").write_text(stub(), encoding="utf-8")
