"""What is committed as built belongs to the sources that are committed, though nobody needs Node to run these tests."""

import hashlib
import pathlib
import re

CONSOLE = pathlib.Path(__file__).parents[2] / "console"
FILES = ["index.html", "package-lock.json", "svelte.config.js", "tsconfig.json", "vite.config.ts"]


def test_the_built_files_are_those_of_the_sources():
    names = FILES + [path.relative_to(CONSOLE).as_posix() for path in (CONSOLE / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(f"{name}\n".encode())
        digest.update((CONSOLE / name).read_bytes())
    recorded = (CONSOLE / "built-from.sha256").read_text().strip()
    assert digest.hexdigest() == recorded, "the console's sources have changed: run `npm ci && npm run build` in console"


def test_the_page_names_exactly_the_files_that_are_there():
    dist = CONSOLE / "dist"
    named = set(re.findall(r'(?:src|href)="/(assets/[^"]+)"', (dist / "index.html").read_text()))
    there = {path.relative_to(dist).as_posix() for path in (dist / "assets").iterdir()}
    assert named == there


def test_the_page_has_nothing_that_the_policy_would_stop():
    page = (CONSOLE / "dist" / "index.html").read_text()
    assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\bon\w+=", page)
