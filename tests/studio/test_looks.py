"""Every page in every state: for people who cannot see it, on a phone, in the dark, on paper."""

import re

import pytest
from axe_playwright_python.base import AXE_SCRIPT

from tallyveil.studio.work_design import LESSONS


def tour(page, served, walk, release_folder):
    """Walk through everything; says the name of each stop."""
    for path in ("/", "/publish", "/learn"):
        page.goto(served.origin + path)
        yield path
    for lesson in LESSONS:
        page.goto(f"{served.origin}/learn/{lesson}")
        page.locator("figure svg").first.wait_for()
        yield lesson
    page.goto(f"{served.origin}/ledger")
    page.get_by_role("button", name="Verify the whole chain").click()
    page.locator("#verdict").wait_for()
    yield "the verified chain"
    page.goto(f"{served.origin}/check")
    page.set_input_files("#folder-pick", release_folder)
    page.locator("#result figure svg").wait_for()
    yield "a verdict"
    page.goto(f"{served.origin}/read")
    page.set_input_files("#folder-pick", release_folder)
    page.get_by_text("The released count 7 fits true counts from").wait_for()
    page.locator("#posterior svg").wait_for()
    page.get_by_label("by region").check()
    page.get_by_role("button", name="Add up").click()
    page.locator("#totals tbody tr").nth(3).wait_for()
    yield "a release that is read"
    page.goto(f"{served.origin}/design")
    page.locator("#map svg").wait_for()
    page.get_by_role("button", name="Pin to compare").click()
    page.get_by_label("fair", exact=False).check()
    page.locator("#map figcaption", has_text="(fair)").wait_for()
    page.get_by_role("button", name="Pin to compare").click()
    page.get_by_role("button", name="Price of each property").click()
    page.locator("#priced table").wait_for()
    yield "designs side by side"
    walk.protect()
    page.get_by_text("More choices", exact=True).click()
    yield "protect"
    page.get_by_label("Largest count").fill("40")
    walk.go_on("accuracy")
    page.get_by_text("Several levels, properties").click()
    page.locator("#band svg").wait_for()
    page.get_by_role("button", name="Simulate a release").click()
    page.locator("#simulated svg").wait_for()
    page.get_by_role("button", name="Compare the methods").click()
    page.locator("#methods article").first.wait_for()
    yield "accuracy"
    page.locator(".steps a").first.click()
    page.wait_for_url("**/table")
    page.get_by_role("button", name="Show values").click()
    page.locator("#values table").wait_for()
    yield "table"
    page.goto(re.sub("table$", "release", page.url))
    walk.name(f"looked at {page.viewport_size['width']} {page.evaluate('Date.now()')}")
    yield "release"
    page.get_by_role("button", name="Release", exact=True).click()
    page.get_by_text("This release checks.").wait_for()
    yield "released"
    page.goto(f"{served.origin}/nothing")
    yield "an error"


def put_on(page, scheme, width):
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_timeout(150)  # charts are drawn anew for the room they have


def find_faults(page):
    """What axe finds serious, and whether the page is wider than the screen."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE_SCRIPT)
    results = page.evaluate("axe.run({resultTypes: ['violations']})")
    bad = [
        (one["id"], one["nodes"][0]["html"][:120])
        for one in results["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    wide = page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return bad + ([("wider than the screen", "")] if wide else [])


@pytest.mark.parametrize(
    "looks",
    [
        pytest.param((("light", 1200), ("dark", 390)), id="some"),
        pytest.param((("dark", 1200), ("light", 390)), id="others", marks=pytest.mark.slow),
    ],
)
def test_every_page_serves_everybody(page, served, walk, release_folder, looks):
    faults = {}
    put_on(page, *looks[0])
    for stop in tour(page, served, walk, release_folder):
        for number, (scheme, width) in enumerate(looks):
            if number > 0:
                put_on(page, scheme, width)
            if bad := find_faults(page):
                faults[stop, scheme, width] = bad
        looks = looks[::-1]  # the next page is opened in the look that this one was left in
    page.context.errors.clear()  # the page that is not there, which the browser logs
    assert faults == {}


def test_letters_keep_their_size_on_a_phone(page, served):
    page.goto(f"{served.origin}/learn/epsilon")
    for width in (1200, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(200)
        drawn = page.locator("#picture svg").evaluate("svg => svg.viewBox.baseVal.width")
        place = page.locator("#picture").evaluate("figure => figure.clientWidth")
        assert drawn == pytest.approx(min(place, 860), abs=2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_paper_shows_what_was_found_and_nothing_to_press(page, served, release_folder, scheme):
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{served.origin}/check")
    page.set_input_files("#folder-pick", release_folder)
    page.locator("#result figure svg").wait_for()
    page.emulate_media(media="print", color_scheme=scheme)
    page.set_viewport_size({"width": 670, "height": 1000})  # the room on a sheet
    assert page.locator("#verdict").is_visible()
    assert page.locator("#result figure svg").is_visible()
    pressed = page.locator("button, nav, input[type=file], .readout")
    assert [one for one in pressed.all() if one.is_visible()] == []
    ink = page.locator("main").evaluate("main => getComputedStyle(main).color")
    paper = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    assert (ink, paper) == ("rgb(34, 48, 60)", "rgb(255, 255, 255)")
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert page.pdf(format="A4").count(b"/Type /Page\n") <= 3
