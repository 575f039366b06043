"""The report in a real browser, and its figures as files."""

import base64
import json
import re
import shutil
from xml.etree import ElementTree

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
SIZES = {"desktop": (1200, 900), "phone": (360, 740)}
FIGURES = {
    "auc-by-parameters", "rmse-by-parameters", "popularity-users", "popularity-items",
    "auc-by-iteration", "auc-by-popularity-users", "auc-by-popularity-items", "dimensions-users",
    "dimensions-items", "parameters-by-popularity-users", "parameters-by-popularity-items",
    "seconds",
}  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not CHROMIUM or not DRIVER:
        pytest.skip("there is no chromium with its chromedriver here")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
        "disable-background-networking", "disable-component-update", "disable-sync",
        f"user-data-dir={tmp_path_factory.mktemp('chromium')}",
    ):  # fmt: skip
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    driver.get("about:blank")
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, study):
    """Opens the report in a window of a size, with a colour scheme."""

    def open_it(size="desktop", scheme="light"):
        width, height = SIZES[size]
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": size == "phone"},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get_log("performance")
        browser.get_log("browser")
        browser.get((study / "report.html").as_uri())
        return browser

    return open_it


def test_no_request_leaves_the_page_and_nothing_is_wrong(opened, study):
    browser = opened()
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert {url for url in requests if not url.startswith("data:")} == {
        (study / "report.html").as_uri()
    }
    assert browser.get_log("browser") == []


def test_all_figures_are_there_and_seen(opened):
    browser = opened()
    figures = browser.find_elements(By.CSS_SELECTOR, "figure")
    assert {figure.get_attribute("id") for figure in figures} == FIGURES
    for figure in figures:
        size = figure.find_element(By.TAG_NAME, "svg").size
        assert size["width"] > 200
        assert size["height"] > 200
    assert "<b>mine</b> & yours" in browser.find_element(By.TAG_NAME, "h1").text
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    broken = browser.execute_script(
        "return [...document.querySelectorAll('use')].map(e => e.href.baseVal)"
        ".filter(to => !document.querySelector(to))"
    )
    assert broken == []


def test_the_tables_say_what_the_figures_show(opened):
    browser = opened()
    rows = browser.find_elements(By.CSS_SELECTOR, ".claims tbody tr")
    assert len(rows) == 8
    assert all(re.search(r"holds|fails|can't be told", row.text) for row in rows)
    figure = browser.find_element(By.ID, "auc-by-parameters")
    figure.find_element(By.TAG_NAME, "summary").click()
    table = figure.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert len(table) == 5 + 3 * 4 == len(figure.find_elements(By.CSS_SELECTOR, "[data-tip]"))
    assert table[0].text.startswith("plain d = 2")


def test_pointing_at_a_spot_shows_its_settings(opened):
    browser = opened()
    spot = browser.find_element(By.CSS_SELECTOR, "#auc-by-parameters [data-tip]")
    tip = browser.find_element(By.ID, "tip")
    assert not tip.is_displayed()
    ActionChains(browser).move_to_element(spot).perform()
    assert re.match(r"plain, d = 2: ROC AUC 0\.\d{4} ± .* parameters; dims 2, reg 3", tip.text)
    ActionChains(browser).move_to_element(browser.find_element(By.TAG_NAME, "h1")).perform()
    assert not tip.is_displayed()


def test_the_keyboard_gets_everywhere(opened):
    browser = opened()

    def press(*keys):
        for key in keys:
            ActionChains(browser).send_keys(key).perform()

    def focused():
        return browser.switch_to.active_element

    press(Keys.TAB)
    assert focused().text == "To the figures"
    press(Keys.ENTER, Keys.TAB)
    tip = browser.find_element(By.ID, "tip")
    assert tip.text.startswith("plain, d = 2:")
    press(Keys.ARROW_RIGHT)
    assert tip.text.startswith("plain, d = 3:")
    press(Keys.END)
    assert "gamma = 0.2" in tip.text
    press(Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ESCAPE)
    assert not tip.is_displayed()
    press(Keys.TAB)
    assert focused().tag_name == "summary", "one stop a figure, not one a spot"
    press(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, "#auc-by-parameters table").is_displayed()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_it_without_scrolling_sideways(opened, scheme):
    browser = opened("phone", scheme)
    width = browser.execute_script("return document.documentElement.scrollWidth")
    assert width <= SIZES["phone"][0]
    spots = browser.find_elements(By.CSS_SELECTOR, "#auc-by-parameters [data-tip]")
    browser.execute_script("arguments[0].focus()", spots[-1])
    box = browser.find_element(By.ID, "tip").rect
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= SIZES["phone"][0]


def luminance(colour: str) -> float:
    channels = [int(of) / 255 for of in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_both_schemes(opened, scheme):
    browser = opened(scheme=scheme)
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    paper = luminance(browser.execute_script(style, "body", "backgroundColor"))
    assert (paper > 0.5) == (scheme == "light")
    card = luminance(browser.execute_script(style, "figure", "backgroundColor"))
    for where, what, behind in (
        ("p", "color", paper), (".soft", "color", paper), ("summary", "color", card),
        ("figure svg text", "fill", card), ("td", "color", paper),
    ):  # fmt: skip
        lighter, darker = sorted(
            (luminance(browser.execute_script(style, where, what)), behind), reverse=True
        )
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5, where


def test_it_prints_on_white_with_nothing_to_click(opened):
    browser = opened(scheme="dark")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
    assert luminance(browser.execute_script(style, "body", "color")) < 0.05
    assert not browser.find_element(By.TAG_NAME, "summary").is_displayed()
    paper = {"width": 720, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", paper)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 720
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8


def test_figures_are_files_too(study):
    files = {path.name for path in (study / "figures").iterdir()}
    assert files == {f"{name}.{suffix}" for name in FIGURES for suffix in ("png", "svg")}
    for path in (study / "figures").glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
        assert path.stat().st_size < 100_000
