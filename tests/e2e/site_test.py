# SPDX-License-Identifier: Apache-2.0
"""The site that tools/site builds: every page is there, every link leads somewhere, nothing is loaded from elsewhere."""

import html.parser
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from urllib.parse import unquote

import harness
import skips

SOURCE = harness.SOURCE_DIR.resolve()
ELSEWHERE = re.compile(r"(?:[a-z][a-z0-9+.-]*:|//)", re.I)
LOADED = {"script", "link", "img", "iframe", "source", "video", "audio", "object", "embed"}  # tags that fetch at once


def there():
    """Whether the environment has been made; the tests do not install it."""
    where = subprocess.run([SOURCE / "tools/site_pages/setup", "--where"], capture_output=True, text=True, check=True)
    return Path(where.stdout.strip()).exists()


def build(source, out):
    return subprocess.run([source / "tools/site", out], capture_output=True, text=True, timeout=600,
                          env=os.environ | {"PIPEWRIGHT_BINARY": str(Path(harness.BINARY).resolve())})


class Page(html.parser.HTMLParser):
    """Its anchors, links, what it loads, and the text outside of code."""

    def __init__(self, file):
        super().__init__()
        self.names, self.links, self.loads, self.text, self.code = set(), [], [], [], 0
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        self.code += tag in ("code", "pre", "script", "style")
        for target in filter(None, (given.get(key) for key in ("href", "src", "data"))):
            (self.loads if tag in LOADED else self.links).append(target)

    def handle_endtag(self, tag):
        self.code -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data):
        if not self.code:
            self.text.append(data)


@skips.needs("site", there())
class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="pipewright-site-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.site = cls.folder / "site"
        cls.built = build(SOURCE, cls.site)
        cls.pages = {file: Page(file) for file in sorted(cls.site.rglob("*.html")) if file.name != "404.html"}

    def page(self, name):
        return self.site / re.sub(r"README\.md$", "index.html", name).replace(".md", ".html")

    def test_is_built(self):
        self.assertEqual(0, self.built.returncode, self.built.stderr)
        self.assertGreater(len(self.pages), 200)

    def test_has_every_page_of_the_repository(self):
        listed = subprocess.run(["git", "ls-files", "*.md"], cwd=SOURCE, capture_output=True, text=True, check=True)
        names = [name for name in listed.stdout.split() if not name.startswith(".") and (SOURCE / name).exists()]
        self.assertGreater(len(names), 100)
        self.assertEqual([], [name for name in names if not self.page(name).exists()])

    def test_reaches_every_page_from_the_first(self):
        seen, left = set(), [self.site / "index.html"]
        while left:
            file = left.pop()
            if file in seen or file not in self.pages:
                continue
            seen.add(file)
            for link in self.pages[file].links:
                if not ELSEWHERE.match(link):
                    left.append((file.parent / unquote(link.partition("#")[0])).resolve() if link[0] != "#" else file)
        self.assertEqual([], [str(file.relative_to(self.site)) for file in self.pages if file not in seen])

    def test_has_a_page_for_each_part_section_and_command(self):
        def listed(*arguments):
            return subprocess.run([harness.BINARY, *arguments], capture_output=True, text=True, check=True).stdout

        kinds = ("schemes", "models", "datasets", "codecs", "optimizers", "losses", "gradient_rules", "probes", "hardware")
        for kind in kinds:
            names = re.findall(r"(?m)^  (\S+)  ", listed("list", kind))
            self.assertGreater(len(names), 2, kind)
            for name in names:
                self.assertTrue((self.site / f"reference/{kind}/{name}.html").exists(), f"{kind} {name}")
        for command in re.findall(r"(?m)^  (\w+)  +\w", listed("--help")):
            self.assertTrue((self.site / f"reference/commands/{command}.html").exists(), command)
        page = "".join(self.pages[self.site / "reference/sections/train.html"].text)
        self.assertIn("Options", page)
        described = (self.site / "reference/schemes/spectrain.html").read_text(encoding="utf-8")
        for word in ("<code>s_mode</code>", "constant or exact; default constant", "the updates that are really pending"):
            self.assertIn(word, described)

    def test_loads_nothing_from_elsewhere(self):
        for file, page in self.pages.items():
            self.assertEqual([], [each for each in page.loads if ELSEWHERE.match(each) and not each.startswith("data:")], file)
        sheets = list(self.site.rglob("*.css"))
        self.assertGreater(len(sheets), 0)
        for sheet in sheets:
            found = re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"';]*", sheet.read_text(encoding="utf-8"))
            self.assertEqual([], found, sheet)

    def test_has_no_link_that_leads_nowhere(self):
        for file, page in self.pages.items():
            for link in page.links + page.loads:
                if ELSEWHERE.match(link):
                    continue
                path, _, anchor = link.partition("#")
                target = (file.parent / unquote(path)).resolve() if path else file
                self.assertTrue(target.exists(), f"{file.relative_to(self.site)}: {link}")
                if anchor and target in self.pages:
                    self.assertIn(unquote(anchor), self.pages[target].names, f"{file.relative_to(self.site)}: {link}")

    def test_has_understood_all_markup(self):
        """Fences, tables and links that are text are ones that were not understood."""
        for file, page in self.pages.items():
            left = re.findall(r"```|\|:?--+|\]\([^)\s]+\)|(?m:^#+ )", "".join(page.text))
            self.assertEqual([], left, file.relative_to(self.site))


@skips.needs("site", there())
class WrongPages(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="pipewright-site-"))).resolve()

    def test_links_that_lead_nowhere_are_errors(self):
        """In a copy of the pages and of what builds them."""
        listed = subprocess.run(["git", "ls-files", "*.md", "*.svg", "*.yaml", "*.cff", "examples", "tools/site*"], cwd=SOURCE,
                                capture_output=True, text=True, check=True)
        copy = self.folder / "copy"
        for name in filter(lambda name: (SOURCE / name).exists(), listed.stdout.split()):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / name, copy / name)
        with open(copy / "docs/manual/learn.md", "a", encoding="utf-8") as page:
            page.write("\n[a page](none.md) and [a heading](lessons.md#none)\n")
        subprocess.run(["git", "init", "-q"], cwd=copy, check=True)
        done = build(copy, self.folder / "site")
        self.assertNotEqual(0, done.returncode)
        self.assertIn("'none.md'", done.stderr)
        self.assertIn("'lessons.md#none'", done.stderr)
        self.assertFalse((self.folder / "site").exists())

    def test_a_folder_with_other_files_is_left_alone(self):
        theirs = self.folder / "theirs"
        theirs.mkdir()
        (theirs / "letter.txt").write_text("dear")
        done = build(SOURCE, theirs)
        self.assertNotEqual(0, done.returncode)
        self.assertIn("name another folder", done.stderr)
        self.assertEqual(["letter.txt"], os.listdir(theirs))


if __name__ == "__main__":
    skips.main()
