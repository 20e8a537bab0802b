"""The studio in a real browser: as a person uses it, and nothing goes outside."""

import json
import os
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import expect
from typer.testing import CliRunner

import tallyveil as tv
from tallyveil.cli.app import app


@pytest.fixture
def table(release_folder):
    return release_folder.with_name("t.csv")


def test_the_whole_journey(page, served, walk, table):
    """Nothing of it is kept in the browser, or in addresses."""
    addresses = []
    page.on("request", lambda sent: addresses.append(sent.url))
    walk.plan(table)
    walk.release("whole journey")
    checked = CliRunner().invoke(app, ["check", str(served.folder / "whole journey"), "--json"])
    assert json.loads(checked.output)["ok"]
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download as zip").click()
    assert waiting.value.suggested_filename == "whole journey.zip"
    saved = page.evaluate("[Object.keys(localStorage), Object.keys(sessionStorage)]")
    assert saved == [[], []]
    assert page.evaluate("document.cookie") == ""
    assert page.evaluate("indexedDB.databases().then(found => found.length)") == 0
    assert not [url for url in addresses if "cases" in url or "county" in url]


def test_a_closed_browser_loses_nothing_that_was_paid_for(page, context, served, walk, table):
    walk.plan(table)
    other = context.new_page()
    other.goto(page.url)
    walk.name("left alone", other).click()
    other.get_by_text("Releasing").wait_for()
    other.close()
    page.reload()
    page.get_by_text("This release checks.").wait_for()
    assert all(finding.ok for finding in tv.check_package(served.folder / "left alone"))


def test_double_click_reload_back_and_two_tabs_debit_once(page, context, served, walk, table):
    book = tv.Ledger(served.folder / "budget.db")
    walk.plan(table)
    before = len(book.history("cases"))
    other = context.new_page()
    other.goto(page.url)
    first, second = walk.name("pressed twice"), walk.name("pressed twice", other)
    first.dblclick()
    second.click(no_wait_after=True)
    page.get_by_text("This release checks.").wait_for()
    other.get_by_text("This release checks.").wait_for()
    page.reload()
    page.get_by_text("This release checks.").wait_for()
    page.go_back()
    page.go_forward()
    page.get_by_text("This release checks.").wait_for()
    assert page.get_by_role("button", name="Release", exact=True).count() == 0
    assert len(book.history("cases")) == before + 1
    other.close()


def test_check_a_good_and_a_forged_release(page, served, release_folder, tmp_path):
    page.goto(f"{served.origin}/check")
    page.set_input_files("#folder-pick", release_folder)
    page.get_by_text("✓ This release checks.").wait_for()
    page.locator("#result figure svg").hover()
    page.locator("#result .readout", has_text="%").wait_for()
    assert page.locator("#result svg .worst").count() == 2
    forged = tmp_path / "forged"
    shutil.copytree(release_folder, forged)
    data = forged / "data.csv"
    data.write_text(data.read_text().replace("c0,N,", "c0,N,1", 1))
    packed = shutil.make_archive(str(tmp_path / "forged"), "zip", tmp_path, "forged")
    page.reload()
    page.set_input_files("#file", packed)
    page.get_by_text("✗ This release does NOT check.").wait_for()
    assert page.locator(".findings .fails").count() >= 1


def test_design_compare_and_hover(page, served):
    page.goto(f"{served.origin}/design")
    page.locator("#map svg").wait_for()
    page.locator("#map svg").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("true 0, released 1:").wait_for()
    chances = tv.geometric(tv.Query.count(40), 1).matrix
    box = page.locator("#map svg image").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 7.5 / 41, box["y"] + box["height"] * 5.5 / 41)
    page.get_by_text(f"true 5, released 7: {100 * chances[5, 7]:.1f}%", exact=True).wait_for()
    page.get_by_role("button", name="Pin to compare").click()
    page.get_by_label("fair", exact=False).check()
    page.locator("#map figcaption", has_text="(fair)").wait_for()
    page.get_by_role("button", name="Pin to compare").click()
    assert page.locator("#pins article").count() == 2
    page.get_by_role("button", name="Price of each property").click()
    page.locator("#priced table").wait_for()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save mechanism and certificate").click()
    assert waiting.value.suggested_filename in ("mechanism.json", "certificate.json")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy as Python").click()
    page.get_by_role("button", name="Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "tv.design(\n    tv.Query.count(upper=40),\n    '1',\n" in copied
    for _ in range(3):
        page.get_by_role("button", name="Pin to compare").click()
    expect(page.locator("#message")).to_have_text("Four are pinned already: remove one first.")
    page.get_by_role("button", name="Remove 1").click()
    assert page.locator("#pins article").count() == 3


def test_a_release_with_the_keyboard_alone(page, served):
    def press(where, *keys):
        """Press Tab until something has the focus, then keys."""
        for _ in range(80):
            page.keyboard.press("Tab")
            if page.locator(where).first.evaluate("one => one === document.activeElement"):
                break
        else:
            pytest.fail(f"the keyboard does not reach {where}")
        for key in keys:
            page.keyboard.press(key)

    def go_on(step, where="#next"):
        press(where, "Enter")
        page.wait_for_url(f"**/{step}")

    page.goto(served.origin)
    go_on("table", "#demo")
    go_on("protect")
    press("[name=rows]", "Space")
    press("[name=count][value=cases]", "Space")
    press("[name=keep][value=county]", "Space")
    press("[name=upper]", *"30")
    go_on("accuracy")
    page.locator("#band svg").wait_for()
    before = page.locator("#epsilon").input_value()
    press("#epsilon-slider", "ArrowLeft")
    assert page.locator("#epsilon").input_value() != before
    go_on("release")
    page.locator("#summary dt").first.wait_for()
    press("#out", *"keyboard")
    press("#dataset", *"cases")
    press("#release", "Enter")
    page.get_by_text("This release checks.").wait_for()
    assert (served.folder / "keyboard" / "receipt.json").is_file()


def test_fifty_megabytes_are_uploaded_and_read(page, served, tmp_path):
    large = tmp_path / "large.csv"
    line = "an area with quite a long name that fills the line,{},7\n"
    large.write_text("area,number,cases\n" + "".join(line.format(i) for i in range(900_000)))
    assert large.stat().st_size > 50 << 20
    page.goto(f"{served.origin}/publish")
    page.set_input_files("#file", large)
    page.wait_for_url("**/table", timeout=120_000)
    page.get_by_text("900,000 rows").first.wait_for()
    page.get_by_role("button", name="Close this table").click()
    page.wait_for_url("**/publish")


def test_pictures_of_the_documentation(page, served, walk, tmp_path):
    """Set TALLYVEIL_PICTURES=docs/images to make the pictures of docs/studio.md anew."""
    folder = Path(os.environ.get("TALLYVEIL_PICTURES", tmp_path))
    page.set_viewport_size({"width": 1000, "height": 1200})
    page.emulate_media(color_scheme="light")

    def picture(name):
        page.wait_for_load_state("networkidle")
        page.screenshot(path=folder / f"studio_{name}.png")
        assert (folder / f"studio_{name}.png").stat().st_size > 10_000

    walk.protect(upper="40")
    page.locator("#band svg").wait_for()
    page.locator(".steps").scroll_into_view_if_needed()
    picture("accuracy")
    page.goto(f"{served.origin}/design")
    page.get_by_label("fair", exact=False).check()
    page.locator("#map figcaption", has_text="(fair)").wait_for()
    page.locator("#map svg").hover(position={"x": 180, "y": 150})
    picture("design")
