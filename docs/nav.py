"""The manual's order, and the tables that only its build has. A new page of a folder finds its place unasked."""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from lab import tables

PAGES = [
    ("Start", "index.md"),
    ("Tutorial", "tutorial.md"),
    ("Watch a window grow", "watch-a-window.md"),
    ("From a capture to an answer", "how-to/capture-to-answer.md"),
    ("Check what fanin reads against your own traces", "how-to/traces.md"),
    ("Advice: transport and settings", "how-to/advice.md"),
    ("On a host: fanin-host", "how-to/host.md"),
    ("Many runs: sweeps", "how-to/sweeps.md"),
    ("When one machine is not enough", "how-to/cluster.md"),
    ("See a run in Wireshark", "how-to/wireshark.md"),
    ("Let an editor complete", "how-to/editors.md"),
    ("An algorithm in Python", "python-algorithms.md"),
    ("Gallery", "gallery.md"),
    ("How the numbers are made", "numbers.md"),
    ("The virtual kernel", "kernel.md"),
    ("On your own Linux", "linux.md"),
    ("The testbed", "testbed.md"),
    ("Performance", "performance.md"),
    ("Validation", "validation.md"),
    ("Differences", "differences.md"),
    ("Glossary", "glossary.md"),
]
FOLDERS = [("Algorithms", "algorithms"), ("Papers", "papers"), ("Reference", "reference"), ("JSON", "json")]


def on_config(config: Any) -> Any:
    """Write the navigation that mkdocs would otherwise have read from mkdocs.yml."""
    docs = Path(config["docs_dir"])
    nav: list[Any] = [{title: page} for title, page in PAGES if (docs / page).exists()]
    for title, folder in FOLDERS:
        pages = sorted(p.relative_to(docs).as_posix() for p in (docs / folder).glob("*.md"))
        if pages:
            nav.append({title: pages})
    config["nav"] = nav
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fill in the tables that are not kept in the pages."""
    return tables.filled(markdown, page.file.src_uri, built=True)
