"""The steps of a release in a browser: back and forth, levels, sums, the budget on top."""

from fractions import Fraction

from playwright.sync_api import expect

import tallyveil as tv


def test_whichever_way_one_walks_what_was_typed_stays(page, served, walk):
    walk.protect()
    page.get_by_label("Largest count").fill("40")
    page.locator(".steps a").nth(0).click()
    page.wait_for_url("**/table")
    page.locator(".steps a").nth(1).click()
    page.wait_for_url("**/protect")
    assert page.get_by_label("Largest count").input_value() == "40"
    assert page.locator("[name=keep]:checked").count() == 2
    walk.go_on("accuracy")
    page.get_by_label("epsilon", exact=True).fill("0.7")
    walk.go_on("release")
    page.get_by_text("epsilon 0.7 for one person").wait_for()
    page.get_by_text("Public columns").wait_for()
    page.get_by_text("Not released").wait_for()
    page.get_by_role("link", name="Back").click()
    page.wait_for_url("**/accuracy")
    assert page.get_by_label("epsilon", exact=True).input_value() == "0.7"


def test_what_is_wrong_is_said_where_it_can_be_mended(page, context, served, walk):
    walk.protect()
    page.locator("[name=hierarchy]").fill("region, county")
    page.locator("#next").click()
    page.get_by_text("“Largest count” must be given for the method 'hierarchy'").wait_for()
    assert page.url.endswith("/protect")
    page.get_by_label("Largest count").fill("40")
    walk.go_on("accuracy")
    page.get_by_text("Totals of cases").wait_for()
    assert page.locator("#within-slider").is_disabled()
    walk.go_on("release")
    walk.release("with sums")
    assert (served.folder / "with sums" / "sums-0.csv").is_file()
    context.errors.clear()  # the refused plan, which the browser logs


def test_several_levels_are_released_checked_and_read(page, served, walk):
    walk.protect(upper="20")
    page.get_by_text("Several levels, properties").click()
    page.get_by_label("Several levels, for readers").fill("0.5, 0.2")
    page.get_by_text("(epsilon 0.5)").wait_for()
    assert page.locator("#epsilon-slider").is_disabled()
    walk.go_on("release")
    walk.release("two levels")
    page.get_by_text("2 levels, ε 0.5, 0.2").wait_for()
    page.goto(f"{served.origin}/read?folder=two%20levels")
    page.get_by_label("Level").select_option("level-2-epsilon-0.2")
    page.get_by_text("(epsilon 0.2)").wait_for()
    page.goto(f"{served.origin}/check?folder=two%20levels")
    page.get_by_text("✓ This release checks.").wait_for()
    page.locator("#result figure svg").first.wait_for()


def test_a_design_saved_here_can_be_released_with(page, served, walk, tmp_path):
    page.goto(f"{served.origin}/design")
    page.locator("#map svg").wait_for()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Save mechanism and certificate").click()
    waiting.value.save_as(tmp_path / "mechanism.json")
    assert page.locator("#saved a").count() == 2
    walk.protect(upper="40")
    page.get_by_text("Several levels, properties").click()
    page.locator("#mechanism").set_input_files(tmp_path / "mechanism.json")
    page.get_by_text("mechanism.json was chosen").wait_for()
    page.locator("#why", has_text="file").wait_for()
    walk.go_on("release")
    walk.release("with a mechanism")


def test_the_budget_is_on_top_with_what_the_plan_would_leave(page, served, walk):
    left = tv.Ledger(served.folder / "budget.db").account("cases").remaining_epsilon
    walk.plan(epsilon="0.3")
    after = page.locator("[data-account=cases] .after")
    words = f"would leave ε {float(left - Fraction(3, 10)):g}"
    expect(after).to_have_text(f"→ this plan {words}")
    page.mouse.wheel(0, 2000)
    expect(after).to_be_in_viewport()
    for path in ("/", "/check", "/design", "/read", "/ledger", "/learn", "/learn/bias"):
        page.goto(served.origin + path)
        expect(after).to_have_text(f"→ the plan for cases.csv {words}")
    after.get_by_role("link").click()
    page.wait_for_url("**/release")
    walk.release("paid for")
    expect(after).to_be_hidden()
    page.goto(served.origin)
    expect(after).to_be_hidden()
    expect(page.locator("[data-account=cases]")).to_contain_text(
        f"ε {float(left - Fraction(3, 10)):g} of 20 left"
    )


def test_a_long_design_shows_its_stages_and_can_be_cancelled(page, served):
    page.goto(f"{served.origin}/design")
    page.locator("#map svg").wait_for()
    page.locator("[name=properties][value=output_private]").check()
    page.locator("[name=properties][value=column_monotone]").check()
    page.get_by_label("Largest").fill("300")
    page.locator(".waiting", has_text="searching for the best mechanism, step").wait_for()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#message")).to_have_text("Cancelled. Nothing was spent.")
    assert page.locator(".waiting").count() == 0
    page.locator("[name=properties][value=output_private]").uncheck()
    page.locator("[name=properties][value=column_monotone]").uncheck()
    page.get_by_label("Largest").fill("12")
    expect(page.locator("#message")).to_be_hidden()


def test_a_long_preview_shows_its_stages_and_can_be_cancelled(page, served, walk):
    walk.protect(upper="20")
    page.locator("#band svg").wait_for()

    held = []
    page.route("**/methods", lambda route: held.append(route.request))  # no answer comes
    page.get_by_role("button", name="Compare the methods").click()
    page.locator(".waiting").wait_for()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("#message")).to_have_text("Cancelled. Nothing was spent.")
    expect(page.get_by_role("button", name="Compare the methods")).to_be_enabled()
    assert len(held) == 1
    page.unroute_all(behavior="ignoreErrors")
