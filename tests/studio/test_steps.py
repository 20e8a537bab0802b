"""The steps of a release in a browser: back and forth, levels, sums, small screens."""

import pytest

import tallyveil as tv

PAGES = (
    *("/", "/publish", "/check", "/read", "/design", "/ledger", "/learn"),
    *(f"/learn/{name}" for name in ("epsilon", "bias", "solvers", "distribution", "levels")),
    "/learn/composition",
)


def open_protect(page, served):
    """The second step of the demo table."""
    page.goto(served.origin)
    page.locator("#demo").click()
    page.wait_for_url("**/table")
    page.locator("#next").click()
    page.wait_for_url("**/protect")
    page.get_by_label("A count of people").check()
    page.locator("[name=count][value=cases]").check()
    page.locator("[name=keep][value=county]").check()
    page.locator("[name=keep][value=region]").check()


def release(page, served, name):
    page.wait_for_url("**/release")
    page.locator("#summary dt").first.wait_for()
    page.get_by_label("Name of the new folder").fill(name)
    page.get_by_label("Paid by the dataset").select_option("cases")
    page.get_by_role("button", name="Release", exact=True).click()
    page.get_by_text("This release checks.").wait_for()
    assert all(finding.ok for finding in tv.check_package(served.folder / name))


def test_whichever_way_one_walks_what_was_typed_stays(page, served):
    open_protect(page, served)
    page.get_by_label("Largest count").fill("40")
    page.locator(".steps a").nth(0).click()
    page.wait_for_url("**/table")
    page.locator(".steps a").nth(1).click()
    page.wait_for_url("**/protect")
    assert page.get_by_label("Largest count").input_value() == "40"
    assert page.locator("[name=keep]:checked").count() == 2
    page.locator("#next").click()
    page.wait_for_url("**/accuracy")
    page.get_by_label("epsilon", exact=True).fill("0.7")
    page.locator("#next").click()
    page.wait_for_url("**/release")
    page.get_by_text("epsilon 0.7 for one person").wait_for()
    page.get_by_text("Published unchanged").wait_for()
    page.get_by_text("Not published").wait_for()
    page.get_by_role("link", name="Back").click()
    page.wait_for_url("**/accuracy")
    assert page.get_by_label("epsilon", exact=True).input_value() == "0.7"


def test_what_is_wrong_is_said_where_it_can_be_mended(page, context, served):
    open_protect(page, served)
    page.locator("[name=hierarchy]").fill("region, county")
    page.locator("#next").click()
    page.get_by_text("A hierarchy needs a public upper bound").wait_for()
    assert page.url.endswith("/protect")
    page.get_by_label("Largest count").fill("40")
    page.locator("#next").click()
    page.wait_for_url("**/accuracy")
    page.get_by_text("Sums of cases").wait_for()
    assert page.locator("#within-slider").is_disabled()
    page.locator("#next").click()
    release(page, served, "with sums")
    assert (served.folder / "with sums" / "sums-0.csv").is_file()
    context.errors.clear()  # the refused plan, which the browser logs


def test_several_levels_are_released_checked_and_read(page, served):
    open_protect(page, served)
    page.get_by_label("Largest count").fill("20")
    page.locator("#next").click()
    page.wait_for_url("**/accuracy")
    page.get_by_text("Several levels, properties").click()
    page.get_by_label("Several levels, for readers").fill("0.5, 0.2")
    page.get_by_text("(epsilon 0.5)").wait_for()
    assert page.locator("#epsilon-slider").is_disabled()
    page.locator("#next").click()
    release(page, served, "two levels")
    page.get_by_text("2 levels, ε 0.5, 0.2").wait_for()
    page.goto(f"{served.origin}/read?folder=two%20levels")
    page.get_by_label("Level").select_option("level-2-epsilon-0.2")
    page.get_by_text("(epsilon 0.2)").wait_for()
    page.goto(f"{served.origin}/check?folder=two%20levels")
    page.get_by_text("✓ This release checks.").wait_for()
    page.locator("#result figure svg").first.wait_for()


def test_a_design_saved_here_can_be_released_with(page, served, tmp_path):
    page.goto(f"{served.origin}/design")
    page.locator("#map svg").wait_for()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save mechanism and certificate").click()
    waiting.value.save_as(tmp_path / "mechanism.json")
    assert page.locator("#saved a").count() == 2
    open_protect(page, served)
    page.get_by_label("Largest count").fill("40")
    page.locator("#next").click()
    page.wait_for_url("**/accuracy")
    page.get_by_text("Several levels, properties").click()
    page.locator("#mechanism").set_input_files(tmp_path / "mechanism.json")
    page.get_by_text("mechanism.json was chosen").wait_for()
    page.locator("#why", has_text="file").wait_for()
    page.locator("#next").click()
    release(page, served, "with a mechanism")


@pytest.mark.parametrize("width", [390, 1200])
def test_no_page_is_wider_than_the_screen(page, served, width):
    page.set_viewport_size({"width": width, "height": 800})
    wide = []

    def look(name):
        page.wait_for_load_state("networkidle")
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(name)

    for path in PAGES:
        page.goto(served.origin + path)
        look(path)
    page.goto(f"{served.origin}/ledger")
    page.get_by_role("button", name="Verify the whole chain").click()
    page.locator("#verdict").wait_for()
    look("the verified chain")
    open_protect(page, served)
    page.get_by_text("More choices", exact=True).click()
    look("protect")
    page.get_by_label("Largest count").fill("40")
    page.locator("#next").click()
    page.wait_for_url("**/accuracy")
    page.get_by_text("Several levels, properties").click()
    page.locator("#band svg").wait_for()
    look("accuracy")
    drawn = page.locator("#band svg").evaluate("svg => svg.viewBox.baseVal.width")
    place = page.locator("#band").evaluate("figure => figure.clientWidth")
    assert drawn == pytest.approx(min(place, 860), abs=2)  # letters keep their size
    assert wide == []
