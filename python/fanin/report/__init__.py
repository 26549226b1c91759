"""The page that a person acts on: one HTML file, readable without a network, that executes nothing it was given.

What a capture or a rack file contains reaches the page only as escaped text and as data in JSON; the page's own policy
(Content-Security-Policy) lets the browser run the two scripts it was written with and fetch nothing at all.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.metadata
import json
import os
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import jinja2

    from fanin.comparison import CompareResult

__all__ = ["page", "summary", "write"]


def write(result: CompareResult, path: str | Path) -> Path:
    """Write the report of a comparison.

    Parameters
    ----------
    result : CompareResult
        With at least one ranked algorithm.
    path : str or pathlib.Path
        File to write.

    Returns
    -------
    pathlib.Path
        `path`.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    target = Path(path)
    target.write_text(page(result), encoding="utf-8")
    return target


def page(result: CompareResult) -> str:
    """The report as HTML."""
    from fanin import waiting
    from fanin.rack_facts import rack_facts, rack_hz
    from fanin.ranking import ONE, PREFIX
    from fanin.report import data, rounds, words
    from fanin.verdict import STATISTIC_NAMES

    environment = _environment()
    environment.filters |= words.FILTERS
    libraries, program = _libraries(), _asset("page.js")
    payload = data.payload(result) | {"charts": _charts(data.names(result))}
    return environment.get_template("page.html").render(
        result=result,
        capture=result.capture,
        names=data.names(result),
        answer=result.verdict,
        rack=rack_facts(result),
        hz=rack_hz(result),
        statistics=STATISTIC_NAMES,
        assumptions=words.assumptions(result.engine),
        method=words.method(),
        fan=data.fan(result),
        waits=waiting.sentences(result.companies),
        rounds=rounds.picture(result),
        kinds=data.kinds(result),
        prefix=PREFIX[result.rank_of],
        called={of: f"{one}s" for of, one in ONE.items()},
        varied_values=lambda key: list(dict.fromkeys(v.settings[key] for v in result.variations)),
        varied_at=lambda settings: next((v for v in result.variations if v.settings == settings), None),
        style=_trusted(_asset("page.css")),
        libraries=_trusted(libraries),
        program=_trusted(program),
        payload=_trusted(script_json(payload)),
        policy=f"default-src 'none'; script-src {_sha256(libraries)} {_sha256(program)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
    )


def summary(result: CompareResult) -> str:
    """The answer and the ranking as HTML without style or script, for a notebook's cell."""
    from markupsafe import Markup, escape

    from fanin.text import significant

    if not result.ranking:
        return "<p>nothing could be ranked</p>"
    by = result.rank_by
    cells = Markup("").join(
        Markup("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>").format(
            row.rank,
            row.cc,
            *(
                "–" if row.completion_ms[name].value is None else significant(row.completion_ms[name].value or 0.0)
                for name in ("p50", by)
            ),
            "–" if row.timeouts.value is None else significant(row.timeouts.value, 2),
        )
        for row in result.ranking
    )
    head = Markup("<tr><th>#</th><th>algorithm</th><th>p50 ms</th><th>{} ms</th><th>timeouts</th></tr>").format(
        by.replace("_", ".")
    )
    told = Markup("").join(Markup("<p>{}</p>").format(sentence) for sentence in result.verdict.support)
    return str(
        Markup("<p><b>{}</b></p>").format(escape(result.verdict.headline))
        + told
        + Markup("<table>{}{}</table>").format(head, cells)
    )


def script_json(thing: Any) -> str:
    r"""JSON that is safe inside a script element: it cannot end the element or open a comment.

    Examples
    --------
    >>> script_json({"server": "</script><!--"})
    '{"server":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(thing, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _trusted(text: str) -> Any:
    """Text of our own making, or made safe above, that goes into the page as it is."""
    import markupsafe

    return markupsafe.Markup(text)


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, in a scope of their own. The same text every time, and long in the making."""

    def bundled() -> str:
        import vl_convert

        return f"(()=>{{{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}}})();"

    return kept(f"vega-{importlib.metadata.version('vl-convert-python')}.js", bundled)


def _charts(names: list[str]) -> Any:
    """The figures of these algorithms; importing what describes them takes longer than the rest of a report."""

    def described() -> str:
        from fanin.report import charts

        return json.dumps(charts.specs(names))

    source = _asset("charts.py") + importlib.metadata.version("altair") + json.dumps(names)
    return json.loads(kept(f"charts-{hashlib.sha256(source.encode()).hexdigest()[:16]}.json", described))


def kept(name: str, make: Callable[[], str]) -> str:
    """A text that is the same every time it is made, kept in the user's cache between runs.

    A file that was cut or changed is made again: it must not be trusted with the page's policy.
    """
    content = _recalled(name)
    if content is not None:
        return content.decode()
    text = make()
    _keep(name, text.encode())
    return text


def _recalled(name: str) -> bytes | None:
    """What was kept under a name, whole; None without."""
    try:
        content, _, digest = (_home() / name).read_bytes().rpartition(b"\n//")
    except (OSError, RuntimeError):
        return None
    return content if digest.decode("ascii", "replace") == hashlib.sha256(content).hexdigest() else None


def _keep(name: str, content: bytes) -> None:
    """Keep it, whole or not at all; a home that cannot be written costs the next run the same time."""
    try:
        home = _home()
        home.mkdir(parents=True, exist_ok=True)
        beside = home / f"{name}.{os.getpid()}.part"
        beside.write_bytes(b"%s\n//%s" % (content, hashlib.sha256(content).hexdigest().encode()))
        beside.replace(home / name)
    except (OSError, RuntimeError):
        pass


def _home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fanin"


def _environment() -> jinja2.Environment:
    """What renders the page; the template is kept compiled between runs."""
    import jinja2

    source = _asset("__init__.py") + jinja2.__version__

    class Compiled(jinja2.BytecodeCache):
        @staticmethod
        def name() -> str:
            return f"page-{hashlib.sha256(source.encode()).hexdigest()[:16]}-{sys.implementation.cache_tag}.bytecode"

        def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            content = _recalled(self.name())
            if content is not None:
                bucket.bytecode_from_string(content)

        def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            _keep(self.name(), bucket.bytecode_to_string())

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        bytecode_cache=Compiled(),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _sha256(script: str) -> str:
    """A script's source expression for the page's policy."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"
