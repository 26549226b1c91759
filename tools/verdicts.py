"""Write the papers' verdicts where they are told: ``tools/verdicts.py [CLAIMS_JSON]``.

`papers/verdicts.csv` has one row per claim, `papers/on_linux.csv` one per claim, engine and rate that was run on Linux's own TCP. What
`fanin reproduce` found last (its `claims.json`) goes into them first, if named. Then the tables between the marks in README.md and in the papers'
READMEs are made from them; a test compares them.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import NamedTuple

from fanin.papers import Paper, load
from fanin.papers.catalogue import searched
from fanin.papers.searching import YES
from fanin.papers.verdicts import DIFFERS, NOT_RUN, VERDICTS

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "papers/verdicts.csv"
ON_LINUX = ROOT / "papers/on_linux.csv"
BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
ALL, QUICK = "all", "quick"


class Row(NamedTuple):
    """One claim's verdict, the reading under which it holds, and the points and seeds that it was judged on: `all`, or nothing before it was run."""

    claim: str
    verdict: str
    reading: str
    points: str


def read() -> dict[str, Row]:
    """The table by claim."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["claim"]: Row(**row) for row in csv.DictReader(file)}


class There(NamedTuple):
    """One claim on Linux's own TCP: on which engine, at which rate, the verdict, the points and seeds, what came out, the day and the commit."""

    claim: str
    engine: str
    rate: str
    verdict: str
    reading: str
    points: str
    ours: str
    recorded: str
    commit: str

    @property
    def told(self) -> str:
        """The verdict where all points and seeds were run; fewer decide nothing."""
        return self.verdict if self.points == ALL else f"indicative: {self.verdict}"


def read_there() -> list[There]:
    """What was run on Linux's own TCP."""
    with ON_LINUX.open(encoding="utf-8", newline="") as file:
        return [There(**row) for row in csv.DictReader(file)]


def merged_there(
    rows: list[There], found: dict[str, object], order: list[str], recorded: str, commit: str
) -> list[There]:
    """The same with what a run found on a day at a commit, in the order of the claims."""
    points = QUICK if found["quick"] else ALL
    made = {(row.claim, row.engine, row.rate): row for row in rows}
    for one in found["on_linux"]:  # type: ignore[attr-defined]
        key = (one["id"], one["engine"], one["rate"])
        if not (points == QUICK and key in made and made[key].points == ALL):
            made[key] = There(*key, one["verdict"], one["reading"], points, one["ours"], recorded, commit)
    return sorted(made.values(), key=lambda row: order.index(row.claim))


def merged(rows: dict[str, Row], found: dict[str, object]) -> dict[str, Row]:
    """The table with what a run on all points and seeds found: `--quick` decides nothing."""
    made = dict(rows)
    for one in [] if found["quick"] else found["claims"]:  # type: ignore[attr-defined]
        if one["verdict"] != NOT_RUN:
            made[one["id"]] = Row(one["id"], one["verdict"], one.get("reading", {}).get("name", ""), ALL)
    return made


def overview(papers: list[Paper], rows: dict[str, Row]) -> str:
    """A row per paper: how many claims have each verdict."""
    lines = ["| paper | " + " | ".join(VERDICTS) + " |", "|---|" + "---|" * len(VERDICTS)]
    for paper in papers:
        mine = [rows[claim.id].verdict for claim in paper.claims]
        counts = " | ".join(str(mine.count(verdict)) for verdict in VERDICTS)
        readme = paper.folder / "README.md"
        title = readme.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").partition(":")[0]
        lines.append(f"| [{title}](papers/{paper.folder.name}/README.md) | {counts} |")
    judged = sum(row.verdict != NOT_RUN for row in rows.values())
    lines += [
        "",
        f"These {judged} verdicts are from all points and [as many seeds as they need](docs/gallery.md); `--quick` decides none.",
    ]
    return "\n".join(lines)


def of_paper(paper: Paper, rows: dict[str, Row]) -> str:
    """A row per claim of one paper."""
    lines = ["| claim | verdict | reading |", "|---|---|---|"]
    tried = [row for row in searched(ROOT / "papers") if row["verdict"] != YES]
    for claim in paper.claims:
        row = rows[claim.id]
        count = sum(one["claim"] == claim.id for one in tried)
        reading = f"none of {count} tried" if row.verdict == DIFFERS and count else row.reading
        lines.append(f"| `{row.claim}` | {row.verdict} | {reading} |")
    names = [claim.id for claim in paper.claims]
    there = [row for row in read_there() if row.claim in names]
    if there:
        lines += [
            "",
            "On Linux's own TCP (`fanin reproduce CLAIM --engine kernel`, or `testbed`; indicative: with `--quick`):",
            "",
            "| claim | engine | bottleneck | verdict | reading | ours | recorded | commit |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| `{one.claim}` | {one.engine} | {one.rate} | {one.told} | {one.reading} | {one.ours} | {one.recorded} | {one.commit} |"
            for one in there
        ]
    if any(rows[claim.id].verdict == DIFFERS and claim.shown for claim in paper.claims):
        lines += [
            "",
            "`fanin reproduce CLAIM --out DIR` has the commands that show why a claim differs, and what they give.",
        ]
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """Every page with its table, as it should be."""
    papers, rows = load(ROOT / "papers"), read()
    tables = {paper.folder / "README.md": of_paper(paper, rows) for paper in papers}
    tables[ROOT / "README.md"] = overview(papers, rows)
    return {page: _with(page.read_text(encoding="utf-8"), table) for page, table in tables.items()}


def _with(text: str, table: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"there is no `{BEGIN}` ... `{END}`")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def main() -> None:
    """Update the table if told to, then the pages."""
    if len(sys.argv) > 1:
        found = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        rows = merged(read(), found)
        order = [claim.id for paper in load(ROOT / "papers") for claim in paper.claims]
        head = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, check=True, capture_output=True)
        there = merged_there(read_there(), found, order, date.today().isoformat(), head.stdout.decode().strip())
        with ON_LINUX.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(There._fields)
            writer.writerows(there)
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(Row._fields)
            writer.writerows(rows[claim] for claim in order)
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
