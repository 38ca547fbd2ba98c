"""The page in a real browser: nothing goes wrong, and the controls do what they say."""

import shutil

import pytest
import torch
from evaluation_archives import index_columns

from evaluation.population import load_population
from evaluation.report import write_report
from sipo_trl.archive import Archive

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine")

# What a chart shows once it is painted, as text: changes when anything in it does. It may have
# several canvases, one above the other.
PICTURE = """id => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(
    () => done([...document.querySelectorAll(`#${id} canvas`)].map(c => c.toDataURL()).join()))))"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def page_file(navigation, tmp_path_factory):
    return write_report(load_population(navigation), tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture
def visit(browser):
    """Open a page; whatever it complains about or asks the network for fails the test."""
    complaints, contexts = [], []

    def open_page(path, width=1280, height=900, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda asked: (
                None if asked.url.startswith(("file:", "data:")) else complaints.append(asked.url)
            ),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("#player canvas")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def order(page):
    return page.eval_on_selector_all(".card h3", "cards => cards.map(card => card.textContent)")


def test_cards_are_sorted(visit, page_file):
    page = visit(page_file)
    assert order(page) == ["Policy 1", "Policy 2", "Policy 3"]
    page.select_option("#sort", "return")
    assert order(page) == ["Policy 3", "Policy 2", "Policy 1"]
    page.select_option("#sort", "order")
    assert order(page) == ["Policy 1", "Policy 2", "Policy 3"]


def test_two_policies_are_compared(visit, page_file):
    page = visit(page_file)
    assert page.inner_text("#verdict").startswith("Policy 1 and Policy 2: distinct")
    before = page.evaluate(PICTURE, "distribution")
    page.select_option("#second", "2")
    assert page.inner_text("#verdict").startswith("Policy 1 and Policy 3: distinct")
    # East against west: they differ in x.
    assert page.inner_text("#feature-title") == "Distribution of “x”"
    assert page.evaluate(PICTURE, "distribution") != before
    page.click("#swap")
    assert page.inner_text("#verdict").startswith("Policy 3 and Policy 1")
    page.click(".card[data-policy='1'] [data-place='first']")
    assert page.inner_text("#verdict").startswith("Policy 2 and Policy 1")
    assert (
        page.get_attribute(".card[data-policy='1'] [data-place='first']", "aria-pressed") == "true"
    )


def test_a_cell_of_the_matrix_chooses_a_pair(visit, page_file):
    page = visit(page_file)
    box = page.locator("#matrix").bounding_box()
    # Row 2, column 3 of the grid between the margins.
    wide, high = box["width"] - 42, box["height"] - 82
    page.mouse.click(box["x"] + 34 + wide * 5 / 6, box["y"] + 8 + high / 2)
    assert page.inner_text("#verdict").startswith("Policy 2 and Policy 3")


def test_the_measure_can_be_chosen(visit, page_file):
    page = visit(page_file)
    before = page.evaluate(PICTURE, "matrix")
    page.select_option("#measure", "3")
    assert "ends of episodes" in page.inner_text("#measure-about")
    assert page.evaluate(PICTURE, "matrix") != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_battle_is_played(visit, battle, tmp_path, scheme):
    page = visit(write_report(load_population(battle), tmp_path / "page.html"), scheme=scheme)
    assert page.inner_text("#stage-title").startswith("The battle")
    at_end = page.evaluate(PICTURE, "player")
    page.evaluate("setTime(0)")
    assert page.evaluate(PICTURE, "player") != at_end


def test_the_player_plays_pauses_and_is_dragged(visit, page_file):
    page = visit(page_file)
    at_end = page.evaluate(PICTURE, "player")
    page.click("#play")
    page.wait_for_function("() => +document.getElementById('time').value > 100")
    page.click("#play")
    stopped = page.input_value("#time")
    assert 0 < int(stopped) < 1000
    assert page.get_attribute("#play", "aria-label") == "Play"
    assert page.evaluate(PICTURE, "player") != at_end
    page.evaluate(
        "() => { const time = document.getElementById('time'); time.value = 1000;"
        " time.dispatchEvent(new Event('input')); }"
    )
    assert page.evaluate(PICTURE, "player") == at_end


def test_policies_can_be_hidden(visit, page_file):
    page = visit(page_file)
    before = page.evaluate(PICTURE, "player")
    page.click(".chip[data-policy='0']")
    assert page.get_attribute(".chip[data-policy='0']", "aria-pressed") == "false"
    assert page.evaluate(PICTURE, "player") != before
    page.click(".chip[data-policy='0']")
    assert page.evaluate(PICTURE, "player") == before


def test_constraints_of_another_policy(visit, page_file):
    page = visit(page_file)
    before = page.evaluate(PICTURE, "curve-multiplier")
    page.select_option("#learner", "1")
    assert page.evaluate(PICTURE, "curve-multiplier") != before


def test_light_and_dark(visit, page_file):
    page = visit(page_file, scheme="dark")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    dark, picture = page.evaluate(ground), page.evaluate(PICTURE, "matrix")
    page.click("#theme")
    assert page.evaluate(ground) != dark
    assert page.evaluate(PICTURE, "matrix") != picture
    page.click("#theme")
    assert page.evaluate(ground) == dark


def test_on_a_phone_controls_are_large_enough_for_fingers(visit, page_file):
    page = visit(page_file, width=390, height=844, scheme="dark")
    sizes = page.eval_on_selector_all(
        "button, select, input",
        "all => all.map(one => one.getBoundingClientRect()).map(box => [box.width, box.height])",
    )
    assert len(sizes) > 10
    assert min(map(min, sizes)) >= 44


def test_on_a_phone_nothing_sticks_out(visit, page_file):
    page = visit(page_file, width=360, height=740)
    assert page.evaluate("() => document.documentElement.scrollWidth") == 360
    for control in ("#play", "#sort", "#first", "#theme"):
        box = page.locator(control).bounding_box()
        assert box["height"] >= 36
        assert box["x"] + box["width"] <= 360


@pytest.mark.parametrize("name", ["football", "battle", "humanoid"])
def test_every_domain_is_shown(visit, name, request, tmp_path):
    population = load_population(request.getfixturevalue(name))
    page = visit(write_report(population, tmp_path / "page.html"))
    assert page.locator(".card").count() == len(population)
    assert page.locator("#learning").is_hidden()
    page.click("#theme")


def test_text_of_an_archive_stays_text(visit, tmp_path):
    attack = "<img src=x onerror=document.title='hurt'>"
    archive = Archive.create(tmp_path / "archive")
    for shift in (0.0, 2.0):
        archive.append(
            torch.rand(8, 2) + shift, config={"env": {"name": attack}}, **index_columns(2, 4)
        )
    page = visit(write_report(load_population(tmp_path / "archive"), tmp_path / "page.html"))
    assert page.inner_text("h1") == f"2 ways through {attack}"
    assert "hurt" not in page.title().replace(attack, "")
