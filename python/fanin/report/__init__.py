"""The page that a person acts on: one HTML file, readable without a network, that executes nothing it was given.

What a capture or a rack file contains reaches the page only as escaped text and as data in JSON; the page's own policy
(Content-Security-Policy) lets the browser run the two scripts it was written with and fetch nothing at all.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fanin.comparison import CompareResult

__all__ = ["page", "write"]


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
    import jinja2

    from fanin.report import charts, data, words
    from fanin.verdict import STATISTIC_NAMES, rack_facts

    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= words.FILTERS
    libraries, program = _libraries(), _asset("page.js")
    payload = data.payload(result) | {"charts": charts.specs(data.names(result))}
    return environment.from_string(_asset("page.html")).render(
        result=result,
        capture=result.capture,
        names=data.names(result),
        answer=result.verdict,
        rack=rack_facts(result),
        statistics=STATISTIC_NAMES,
        assumptions=words.ASSUMPTIONS,
        method=words.method(),
        fan=data.fan(result),
        style=_trusted(_asset("page.css")),
        libraries=_trusted(libraries),
        program=_trusted(program),
        payload=_trusted(script_json(payload)),
        policy=f"default-src 'none'; script-src {_sha256(libraries)} {_sha256(program)}; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
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
    """Vega, Vega-Lite and Vega-Embed in one script, in a scope of their own."""
    import vl_convert

    return f"(()=>{{{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}}})();"


def _sha256(script: str) -> str:
    """A script's source expression for the page's policy."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"
