"""The generated pages are what the package and the program say now."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("file", "maker"),
    [
        ("docs/command-line.md", "command_line_page"),
        ("docs/api.md", "api_page"),
        ("docs/reference.md", "reference_page"),
        ("docs/request.schema.json", "request_schema"),
    ],
)
def test_the_file_is_what_the_program_says(generate, file, maker):
    written = (ROOT / file).read_text(encoding="utf-8")
    assert written == getattr(generate, maker)(), "run: python docs/generate.py"


def test_every_command_and_option_is_on_the_page(generate):
    page = generate.command_line_page()
    commands = dict(generate._commands(generate.typer.main.get_command(generate.app)))
    assert ("ledger", "init") in commands
    for words, command in commands.items():
        section = page.split(f"\n## tallyveil {' '.join(words)}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert f"`{parameter.opts[0]}`" in section
        assert f"\ntallyveil {' '.join(words)} " in section.split("```sh")[1]


def test_defaults_are_shown(generate):
    page = generate.command_line_page()
    assert "| `--confidence` `CONFIDENCE` | ... with this probability. | `0.95` |" in page
