# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/manual/schemes as they should be."""

import re
import tempfile
from pathlib import Path

from scheme_pages.figures import Figures
from scheme_pages.program import Program
from scheme_pages.published import published
from study_pages.markers import filled

INDEX = "README.md"


class Pages:
    def __init__(self, root):
        self.root = root
        self.folder = root / "docs/manual/schemes"

    def schemes(self):
        """Names to what `list` says of each."""
        with tempfile.TemporaryDirectory(prefix="pipewright-schemes-") as folder:
            listed = Program(self.root, folder)("list", "schemes")
        return dict(re.findall(r"(?m)^  (\w+) +(\S.*)$", listed))

    def changed_files(self):
        """Each page and drawing with its new text, where that is another."""
        for page in sorted(self.folder.glob("*.md")):
            if page.name != INDEX:
                for file, text in self.files_of(page).items():
                    if not file.exists() or file.read_text(encoding="utf-8") != text:
                        yield file, text

    def files_of(self, page):
        """The page and the drawing beside it."""
        with tempfile.TemporaryDirectory(prefix="pipewright-schemes-") as folder:
            figures = Figures(page, Program(self.root, folder))
            filling = Filling(self.root, figures)
            text = filled(page.read_text(encoding="utf-8"), filling, page)
            return {page: text} | {page.parent / name: drawn for name, drawn in figures.drawings.items()}


class Filling:
    """What each marker is filled with."""

    def __init__(self, root, figures):
        self.root = root
        self.fillings = {
            "program": figures.text,
            "published": lambda scheme: published(Path(root) / "experiments/published", scheme),
        }
