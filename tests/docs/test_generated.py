"""Pages that the site builds from the package: every command, every name, the schema."""

import importlib.util
import json
from pathlib import Path

import pytest

import tallyveil as tv

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def generate():
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_command_and_option_is_on_the_page(generate):
    page = generate.build_command_line()
    group = generate.typer.main.get_command(generate.app)
    commands = list(generate.list_commands(group))
    assert ("ledger", "init") in commands
    for words in commands:
        section = page.split(f"\n## tallyveil {' '.join(words)}\n")[1].split("\n## ")[0]
        command = group
        for word in words:
            command = command.commands[word]
        for parameter in command.params:
            if parameter.param_type_name == "option" and not parameter.hidden:
                assert parameter.opts[0] in section, words


def test_every_public_name_and_key_is_on_its_page(generate):
    page = generate.build_reference()
    for space, module in {"tv": tv, "tv.results": tv.results, "tv.papers": tv.papers}.items():
        for name in set(module.__all__) - {"__version__", "results", "papers"}:
            home = getattr(module, name)
            assert f"heading: {space}.{name}," in page or isinstance(home, type(tv))
    assert "epsilon" in json.loads(generate.build_schema())["properties"]
