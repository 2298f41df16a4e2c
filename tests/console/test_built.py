"""The committed `dist` was built from the committed sources. These tests need no Node."""

import hashlib
import pathlib
import re

CONSOLE = pathlib.Path(__file__).parents[2] / "console"
FILES = ["index.html", "package-lock.json", "svelte.config.js", "tsconfig.json", "vite.config.ts"]


def test_dist_matches_the_sources():
    names = FILES + [path.relative_to(CONSOLE).as_posix() for path in (CONSOLE / "src").rglob("*") if path.is_file()]
    digest = hashlib.sha256()
    for name in sorted(names):
        digest.update(f"{name}\n".encode())
        digest.update((CONSOLE / name).read_bytes())
    recorded = (CONSOLE / "built-from.sha256").read_text().strip()
    assert digest.hexdigest() == recorded, "the sources of the console have changed: run `npm ci && npm run build` in console"


def test_index_references_exactly_the_built_files():
    dist = CONSOLE / "dist"
    referenced = set(re.findall(r'(?:src|href)="/(assets/[^"]+)"', (dist / "index.html").read_text()))
    present = {path.relative_to(dist).as_posix() for path in (dist / "assets").iterdir()}
    assert referenced == present


def test_index_has_no_inline_scripts_or_styles():
    page = (CONSOLE / "dist" / "index.html").read_text()
    assert not re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\bon\w+=", page)
