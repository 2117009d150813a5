# SPDX-License-Identifier: Apache-2.0
"""The page of `pipewright report` in a real browser: no error, no network, hovers, zoom, keyboard, narrow, dark, printed.

$PIPEWRIGHT_SCREENSHOTS names a folder in which pictures of the page are kept, to be looked at.
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import browser
import harness
import skips
from harness import SWEEP
from report_pages import HOSTILE, experiment

SHOWN = os.environ.get("PIPEWRIGHT_SCREENSHOTS")


@skips.needs("chromium", browser.program() is not None)
class Browsers(unittest.TestCase):
    """One sweep serves all tests; they only look."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="pipewright-e2e-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.run_program("sweep", "--jobs", "2", code=SWEEP, text=experiment())
        cls.run_program("report")
        cls.page = cls.folder / "sw/report.html"

    @classmethod
    def run_program(cls, command, *arguments, code=0, text=None):
        if text is not None:
            (cls.folder / "s.yaml").write_text(text)
        done = subprocess.run(
            [os.path.abspath(harness.BINARY), command, "s.yaml", "--out", "sw", *arguments],
            cwd=cls.folder, capture_output=True, text=True, timeout=harness.SECONDS_LIMIT, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr

    def opened(self, page=None, **settings):
        """A browser that shows the page, and is asked at the end whether anything went wrong."""
        shown = browser.Browser(**settings)
        shown.__enter__()
        self.addCleanup(shown.__exit__)
        shown.open(page or self.page)
        self.addCleanup(lambda: self.assertEqual((shown.errors, shown.asked), ([], [])))
        return shown

    def keep(self, shown, name, whole=True):
        if SHOWN:
            Path(SHOWN).mkdir(parents=True, exist_ok=True)
            shown.screenshot(Path(SHOWN) / f"{name}.png", whole)

    def test_charts_answer_a_pointer_and_keys(self):
        shown = self.opened()
        self.assertGreaterEqual(shown.run("document.querySelectorAll('figure.chart svg[role=img]').length"), 6)
        tip = "document.querySelector('.tip').textContent"
        says = r"^.+: [\d.]+( ± [\d.]+)?( \(3 runs\))?, epoch [123]$"
        shown.hover("figure.chart .still > svg", 0.5, 0.4)
        shown.wait("!document.querySelector('.tip').hidden")
        self.assertRegex(shown.run(tip), says)
        self.keep(shown, "hover", whole=False)
        shown.run("document.querySelector('figure.chart .still').focus()")
        shown.press("ArrowRight")
        shown.press("ArrowRight")
        self.assertRegex(shown.run(tip), r"epoch 2$")
        first = shown.run(tip).split(":")[0]
        self.assertEqual(shown.run("document.querySelectorAll('.mark.picked').length"), 1)
        shown.press("ArrowDown")
        self.assertRegex(shown.run(tip), says)
        self.assertNotEqual(shown.run(tip).split(":")[0], first)
        # A button of the legend hides its line, its band and its marks, which then answer no more.
        seen = (
            "[...document.querySelectorAll('figure.chart')[0].querySelectorAll('[data-line=\"0\"] > *')]"
            ".filter((each) => each.getClientRects().length > 0).length"
        )
        self.assertGreaterEqual(shown.run(seen), 4)
        button = "document.querySelector('.legend button')"
        shown.run(f"{button}.click()")
        self.assertEqual(shown.run(seen), 0)
        shown.run("document.querySelector('figure.chart .still').focus()")
        for _ in range(3):
            shown.press("ArrowDown")
            self.assertNotEqual(shown.run(tip).split(":")[0], first)
        shown.run(f"{button}.click()")
        self.assertGreaterEqual(shown.run(seen), 4)

    def test_schedules_say_versions_and_zoom(self):
        shown = self.opened()
        shown.hover(".drawing rect[data-tip*='backward']")
        tip = shown.run("document.querySelector('.tip').textContent")
        self.assertRegex(tip, r"^backward of mini-batch \d+.*; weights \d+")
        self.assertFalse(shown.run("document.querySelector('.tip').hidden"))
        width = "document.querySelector('.drawing svg').getBoundingClientRect().width"
        before = shown.run(width)
        shown.run("document.querySelector('.tools button[aria-label=\"Zoom in\"]').click()")
        self.assertAlmostEqual(shown.run(width) / before, 1.5, delta=0.02)  # a pixel of scroll bars at most
        shown.run("document.querySelector('.drawing').focus()")
        shown.press("+")
        self.assertAlmostEqual(shown.run(width) / before, 2.25, delta=0.03)
        shown.press("0")
        self.assertEqual(shown.run(width), before)
        for key, stays in (("ArrowRight", True), ("ArrowRight", True), ("ArrowDown", False)):
            lane = shown.run("document.querySelector('.picked')?.getAttribute('y')")
            shown.press(key)
            now = shown.run("document.querySelector('.picked').getAttribute('y')")
            self.assertTrue(lane is None or (now == lane) == stays, key)
        self.assertIn("worker", shown.run("document.querySelector('.drawing').textContent"))
        shown.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        traced = shown.run(
            "[...document.querySelectorAll('.drawing rect[data-tip]')].map((e) => e.dataset.tip)"
            ".filter((tip) => / to .*s; weights /.test(tip)).length"
        )
        self.assertGreater(traced, 0)

    def test_it_fits_wide_and_narrow_in_light_and_dark(self):
        for width in (400, 1600):
            for dark in (False, True):
                with self.subTest(width=width, dark=dark):
                    shown = self.opened(width=width, dark=dark)
                    self.assertLessEqual(shown.run("document.documentElement.scrollWidth"), width)
                    paper, ink = shown.run(
                        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
                        ".map((text) => text.match(/\\d+/g).slice(0, 3).reduce((sum, each) => sum + +each, 0) / 765)"
                    )
                    self.assertEqual(paper < ink, dark)
                    self.assertGreater(abs(paper - ink), 0.6)
                    self.keep(shown, f"{width}-{'dark' if dark else 'light'}")

    def test_without_scripts_pictures_and_tables_are_there(self):
        shown = self.opened(scripts=False)
        facts = shown.run(
            "[document.querySelectorAll('.legend button').length, document.querySelectorAll('.still svg').length,"
            " document.querySelectorAll('table').length, document.querySelectorAll('.drawing svg title').length,"
            " document.querySelector('.still svg').getBoundingClientRect().height]"
        )
        self.assertEqual(facts[0], 0)
        self.assertGreaterEqual(facts[1], 6)
        self.assertGreaterEqual(facts[2], 5)
        self.assertGreater(facts[3], 20)
        self.assertGreater(facts[4], 200)
        self.keep(shown, "no-scripts")

    def test_print_has_pictures_and_no_buttons(self):
        shown = self.opened(dark=True)
        shown.media(dark=True, printed=True)
        display = "getComputedStyle(document.querySelector('{}')).display"
        self.assertEqual(shown.run(display.format(".still")), "block")
        self.assertEqual(shown.run(display.format(".tools")), "none")
        self.assertEqual(shown.run("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)")
        if SHOWN:
            shown.pdf(Path(SHOWN) / "printed.pdf")

    def test_a_dark_page_becomes_light_while_it_is_open(self):
        shown = self.opened(dark=True)
        own = "getComputedStyle(document.querySelector('.mark')).fill"
        dark = shown.run(own)
        shown.media(dark=False)
        shown.wait(f"{own} !== {json.dumps(dark)}")

    def test_keys_reach_everything(self):
        shown = self.opened()
        self.assertEqual(
            shown.run(
                "[...document.querySelectorAll('.drawing, .still, .wide, summary, .tools button, nav a')]"
                ".filter((each) => each.tabIndex < 0).length"
            ),
            0,
        )
        self.assertEqual(
            shown.run(
                "[...document.querySelectorAll('svg[role=img], .still, .drawing, .wide')].filter((each) =>"
                " !each.getAttribute('aria-label') && !each.querySelector('title')).length"
            ),
            0,
        )

    def test_hostile_texts_do_nothing(self):
        folder = self.folder / "hostile"
        shutil.copytree(self.folder / "sw", folder)
        for text, path in zip(HOSTILE * 3, sorted(folder.glob("*/point.json"))):
            point = json.loads(path.read_text())
            point["label"], point["varied"]["label"] = text, text
            path.write_text(json.dumps(point))
        subprocess.run([os.path.abspath(harness.BINARY), "report", folder], check=True, capture_output=True)
        shown = self.opened(folder / "report.html")
        self.assertIsNone(shown.run("window.hacked ?? null"))
        self.assertEqual(shown.run("document.querySelectorAll('img, iframe, [onload], [onclick]').length"), 0)
        shown.hover("figure.chart .still > svg", 0.5, 0.4)
        self.assertEqual(shown.run("document.querySelectorAll('h1').length"), 1)


if __name__ == "__main__":
    harness.main()
