# SPDX-License-Identifier: Apache-2.0
"""Markers in a page, and what stands between a marker and its end.

    <!-- table: A -->
    …
    <!-- end -->

What stands between is replaced, whatever it was. A marker within a line, as in
`<!-- value: P1 effect -->+1.20 points<!-- end -->`, is filled within the line.
"""

import re

END = "<!-- end -->"
MARKER = re.compile(r"<!-- (\w+): ([^\n]*?) -->(\n?)")


class Wrong(Exception):
    """What a person has to put right: one line with its place."""


def filled(text, study, page):
    """The page with every marker filled by the method of `study` that has the marker's name."""
    parts, at = [], 0
    for marker in MARKER.finditer(text):
        place = f"{page.relative_to(study.root)}:{text.count(chr(10), 0, marker.start()) + 1}"
        if marker.start() < at:
            raise Wrong(f"{place}: '{marker[0].strip()}' begins before the marker above it has ended; expected {END}")
        end = text.find(END, marker.end())
        if end < 0:
            raise Wrong(f"{place}: '{marker[0].strip()}' does not end; expected {END} behind it")
        check_line(marker, text, place)
        content = content_of(marker, study, place)
        parts += [text[at : marker.end()], content, marker[3], END]
        at = end + len(END)
    return "".join([*parts, text[at:]])


def check_line(marker, text, place):
    """A comment at the beginning of a line is a block of its own in Markdown, and ends the sentence before it."""
    begins = marker.start() == 0 or text[marker.start() - 1] == "\n"
    if marker[1] == "value" and begins:
        raise Wrong(f"{place}: '{marker[0].strip()}' begins a line; expected a word of its sentence before it")
    if marker[1] != "value" and not (begins and marker[3]):
        raise Wrong(f"{place}: '{marker[0].strip()}' stands within a line; expected one of its own")


def content_of(marker, study, place):
    name, words = marker[1], marker[2]
    if name not in study.fillings:
        raise Wrong(f"{place}: there is no marker '{name}'; known: {', '.join(sorted(study.fillings))}")
    try:
        return study.fillings[name](words)
    except Wrong as wrong:
        raise Wrong(f"{place}: {wrong}") from None
