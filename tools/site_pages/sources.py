# SPDX-License-Identifier: Apache-2.0
"""The pages of the source tree, and the files that they link to, copied to where MkDocs reads them."""

import re
import shutil
import subprocess

from github_markdown import rewritten

LINK = re.compile(r"(?P<before>\]\(|(?:src|href)=\")(?P<path>[^)\s\"#:]+)(?P<anchor>#[^)\s\"]*)?(?P<after>[)\"])")
CODE = re.compile(r"(?ms)^ *```.*?^ *```$|`[^`\n]*`")


def tracked_pages(root):
    """Every page of the repository but those about issues, which git knows or would."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"],
                            cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted(name for name in set(listed.split("\0")) if name and not name.startswith(".") and (root / name).exists())


def lessons(root):
    return sorted((root / "examples/lessons").glob("*.yaml"))


def lesson_page(file):
    number, _, name = file.stem.partition("_")
    return f"# {int(number)}. {name.replace('_', ' ').capitalize()}\n\n```yaml\n{file.read_text(encoding='utf-8')}```\n"


def aimed(link, page, root, staged):
    """A link as the site has it: to the page of a lesson or the index of a folder; a file that is no page is copied."""
    target = (page.parent / link["path"]).resolve()
    path = link["path"]
    if target.is_dir():
        path = f"{path.rstrip('/')}/README.md"
    elif target in lessons(root):
        path = re.sub(r"\.yaml$", ".md", path)
    elif target.suffix != ".md" and target.is_relative_to(root) and target.exists():
        copy = staged / target.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
    return f"{link['before']}{path}{link['anchor'] or ''}{link['after']}"


def with_links(text, aim):
    """Replaces the links of a text, but not what looks like one in code."""
    done, last = [], 0
    for code in CODE.finditer(text):
        done += [LINK.sub(aim, text[last : code.start()]), code[0]]
        last = code.end()
    return "".join(done) + LINK.sub(aim, text[last:])


def stage(root, staged):
    """Returns the names of all pages."""
    names = tracked_pages(root)
    for name in names:
        page = root / name
        text = with_links(page.read_text(encoding="utf-8"), lambda link: aimed(link, page, root, staged))
        write(staged / name, rewritten(text))
    for file in lessons(root):
        names.append(f"examples/lessons/{file.stem}.md")
        write(staged / names[-1], lesson_page(file))
    if "docs/formats/README.md" not in names:
        rows = "\n".join(f"- [{name}]({name})" for name in sorted(path.name for path in (staged / "docs/formats").glob("*.md")))
        names.append("docs/formats/README.md")
        write(staged / names[-1], f"# File formats\n\n{rows}\n")
    return names


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
