"""Two windows, a session that ends while a page is open, a browser without scripts, both languages."""

from playwright.sync_api import expect

from service.upkeep.installation import owner_transaction


def end_sessions_of(stack, window):
    """As time would."""
    (token,) = [each["value"] for each in window.page.context.cookies() if each["name"] == "imprimatur_session"]
    with owner_transaction(stack.settings) as session:
        changed = session.connection().exec_driver_sql(
            "UPDATE page_sessions SET seen_at = seen_at - interval '2 days' WHERE key_id = %s", (token.split(".")[1],)
        )
        assert changed.rowcount >= 1


def test_signing_out_in_one_window_leaves_the_other(open_window, keys_of, dataset):
    owner, analyst = open_window(keys_of.owner), open_window(keys_of.analyst)
    owner.page.get_by_role("button", name="Sign out").click()
    expect(owner.page.get_by_label("API key")).to_be_visible()
    analyst.go(f"/datasets/{dataset['id']}")
    expect(analyst.page.get_by_role("heading", name="visits")).to_be_visible()
    expect(analyst.page.get_by_role("link", name="Administration")).to_have_count(0)


def test_a_second_tab_of_a_session_that_was_signed_out(open_window, keys_of, dataset):
    window = open_window(keys_of.analyst, f"/datasets/{dataset['id']}/order")
    expect(window.page.locator("#quote .words")).to_be_visible()
    second = window.page.context.new_page()
    second.goto(window.address)
    second.get_by_role("button", name="Sign out").click()
    expect(second.get_by_label("API key")).to_be_visible()
    window.page.get_by_role("button", name="Continue").click()
    expect(window.page.get_by_label("API key")).to_be_visible()


def test_a_session_that_ends_while_a_form_is_open_leads_to_the_sign_in_page(stack, open_window, keys_of, dataset):
    window = open_window(keys_of.analyst, f"/datasets/{dataset['id']}/order")
    expect(window.page.locator("#quote .words")).to_be_visible()
    end_sessions_of(stack, window)
    window.page.locator("#epsilon").fill("0.7")
    expect(window.page.get_by_text("Your session has ended")).to_be_visible()
    assert window.take("401")
    window.page.get_by_label("API key").fill(keys_of.analyst)
    window.page.get_by_role("button", name="Sign in").click()
    expect(window.page.get_by_role("heading", name="Order a release")).to_be_visible()
    assert window.path == f"/datasets/{dataset['id']}/order"


def test_who_types_is_not_idle(open_window, keys_of):
    window = open_window(keys_of.owner, "/datasets/new")
    window.page.get_by_role("button", name="Try with sample data").click()
    field = window.page.get_by_label("Smallest value").first
    field.wait_for()
    window.page.wait_for_load_state()  # the script that sees typing is run after the page is read
    window.page.evaluate("toldAt -= 61_000")  # as time would
    with window.page.expect_response("**/session") as told:
        field.press_sequentially("12")
    assert told.value.status == 204


def test_back_from_an_order_leads_to_its_form_and_orders_nothing(open_window, keys_of, dataset):
    """Chromium would ask whether to send the form again, and show an error until then."""
    window, form = open_window(keys_of.analyst), f"/datasets/{dataset['id']}/order"
    page = window.page
    window.go(form)
    page.locator("#epsilon").fill("0.5")
    page.get_by_label("Method", exact=True).select_option("marginals")
    expect(page.locator("#quote")).to_contain_text("It costs")
    expect(page.locator("#report-noise")).to_contain_text("Noise would hide")  # for so few units, beside the tick
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Order for ε = 0.5").click()
    page.wait_for_url("**/releases/*")
    page.go_back()
    expect(page.get_by_role("heading", name="Order a release")).to_be_visible()
    assert window.path == form
    page.reload()
    expect(page.get_by_role("heading", name="Order a release")).to_be_visible()
    window.go(f"/datasets/{dataset['id']}")
    expect(page.get_by_role("table").last.locator("tbody tr")).to_have_count(1)


def test_a_session_that_ends_while_a_release_runs_leads_to_the_sign_in_page(stack, open_window, keys_of, running):
    window = open_window(keys_of.reader, f"/releases/{running['id']}")
    expect(window.page.get_by_role("progressbar")).to_be_visible()
    end_sessions_of(stack, window)
    expect(window.page.get_by_label("API key")).to_be_visible()
    assert window.take("401")


def test_without_scripts_one_can_read_and_order(open_window, keys_of, dataset, client):
    window = open_window(keys_of.analyst, f"/datasets/{dataset['id']}", java_script_enabled=False)
    page = window.page
    page.get_by_role("button", name="Order a release").click()
    page.locator("#epsilon").fill("1")
    page.get_by_label("Method", exact=True).select_option("marginals")
    page.get_by_role("button", name="Show the price").click()
    expect(page.locator("#quote")).to_contain_text("at most 73")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Order for ε = 1").click()
    page.wait_for_url("**/releases/*")
    client.wait(window.path.rpartition("/")[2])
    page.reload()
    page.get_by_role("link", name="Look at rows").click()
    expect(page.locator("tbody tr")).to_have_count(25)
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_text("Rows 26 to 50")).to_be_visible()
    page.get_by_label("Only rows with").fill("colour=red")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody td").first).to_have_text("red")
    page.locator("main").get_by_role("link").first.click()
    page.get_by_role("link", name="Look at columns and pairs").click()
    page.get_by_text("as numbers").first.click()
    expect(page.locator("figure table").first).to_be_visible()


def test_the_language_is_chosen_and_kept(open_window, keys_of):
    window = open_window(keys_of.reader)
    window.page.get_by_role("link", name="Deutsch").click()
    expect(window.page.locator("html")).to_have_attribute("lang", "de")
    window.page.reload()
    expect(window.page.get_by_role("heading", name="Datensätze")).to_be_visible()
    expect(window.page.get_by_role("button", name="Abmelden")).to_be_visible()
