# SPDX-License-Identifier: Apache-2.0
"""What tools/site does: stages the pages, makes those of the reference, and lets MkDocs build the site, strictly."""

import logging
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["NO_MKDOCS_2_WARNING"] = "1"  # a remark of Material for MkDocs about a version that is not used here

import mkdocs.config
from mkdocs.commands.build import build
from mkdocs.exceptions import MkDocsException

import reference
import sources
from github_markdown import heading_name

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MARK = ".pipewright-site"  # in a folder that this program may replace


def manual_sections(staged):
    """Headings of the manual's index, each with the pages that it links to."""
    index = (staged / "docs/manual/README.md").read_text(encoding="utf-8")
    for heading, rows in re.findall(r"(?ms)^## (.+?)\n(.*?)(?=^## |\Z)", index):
        yield heading, [f"docs/manual/{page}" for page in re.findall(r"(?m)^\| \[[^\]]+\]\(([^)]+)\)", rows)]


def with_folders(pages, names):
    """Behind the README of a folder of the manual, the other pages of that folder."""
    for page in pages:
        yield page
        if page.endswith("/README.md"):
            yield from (name for name in names if name.startswith(page.removesuffix("README.md")) and name != page)


def navigation(staged, names, generated):
    """Every page is in it once."""
    nav, left = [{"Home": "README.md"}], [name for name in names if name != "README.md"]

    def take(title, pages):
        nav.append({title: pages})
        for page in pages:
            left.remove(page)

    for heading, pages in manual_sections(staged):
        pages = list(with_folders(pages, names))
        if heading == "Learn":
            pages = ["docs/manual/README.md", *pages, *(name for name in left if name.startswith("examples/lessons/"))]
        take(heading, pages)
    nav.append({"Reference": [{Path(folder).name.replace("_", " ").capitalize(): pages} for folder, pages in generated.items()]})
    for title, folder in (("Formats", "docs/formats/"), ("Study", "docs/study/")):
        take(title, sorted((name for name in left if name.startswith(folder)), key=lambda name: (not name.endswith("README.md"), name)))
    take("Extend", ["CONTRIBUTING.md", "docs/architecture.md", "SECURITY.md", "CHANGELOG.md"])
    nav.append({"Source tree": [{str(Path(name).parent): name} for name in left]})
    return nav


def make_reference(staged, program):
    """Writes its pages; returns those of each folder, its index first."""
    folders = {}
    for folder, name, text in reference.pages(program):
        sources.write(staged / "reference" / folder / name, text)
        folders.setdefault(folder, []).append(f"reference/{folder}/{name}")
    return {folder: sorted(pages, key=lambda page: (not page.endswith("README.md"), page)) for folder, pages in folders.items()}


def build_site(staged, site, nav):
    config = mkdocs.config.load_config(str(HERE / "mkdocs.yml"), docs_dir=str(staged), site_dir=str(site), nav=nav, strict=True)
    config.mdx_configs.setdefault("toc", {}).update(slugify=heading_name, permalink=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()


def check_place(out):
    """A folder of somebody else is left alone."""
    if out.exists() and not (out / MARK).exists() and any(out.iterdir()):
        raise reference.Wrong(f"{out} has files that are no site of tools/site; name another folder")


def replace(site, out):
    """Puts the built site into its place."""
    shutil.rmtree(out, ignore_errors=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    (site / MARK).touch()
    shutil.move(site, out)


def main():
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s: %(message)s")
    out = Path(sys.argv[1]).resolve()
    program = reference.Program(os.environ.get("PIPEWRIGHT_BINARY", str(ROOT / "build/pipewright")))
    with tempfile.TemporaryDirectory(prefix="pipewright-site-") as temporary:
        staged, site = Path(temporary, "pages").resolve(), Path(temporary, "site").resolve()
        try:
            check_place(out)
            names = sources.stage(ROOT, staged)
            generated = make_reference(staged, program)
            build_site(staged, site, navigation(staged, names, generated))
            replace(site, out)
        except reference.Wrong as wrong:
            sys.exit(str(wrong))
        except MkDocsException as wrong:
            sys.exit(f"the site is not built: {wrong}")
    print(f"{len(list(out.rglob('*.html')))} pages, see {out}/index.html")


if __name__ == "__main__":
    main()
