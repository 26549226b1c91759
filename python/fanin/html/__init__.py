"""The one way to an HTML page: readable without a network, and it executes nothing that it was given.

Text from outside is escaped by the template, data travels as JSON that cannot end its element, and the page's own policy
(Content-Security-Policy) lets a browser run the scripts that the page was written with, by their hash, and fetch nothing.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import sys
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from fanin.disk.cache import keep, recalled

if TYPE_CHECKING:
    import jinja2


def rendered(
    package: str, template: str, *scripts: str, filters: Mapping[str, Any] | None = None, **values: Any
) -> str:
    """A page from a package's template.

    Parameters
    ----------
    package, template : str
        Where the template lies. It writes ``policy`` into its head, and each of `scripts`, in order, into an element of its own.
    *scripts : str
        Programs of our own that the page runs. The template finds them as ``scripts``.
    filters : mapping, optional
        The template's own filters, by name.
    **values : object
        What the template names; text is escaped.
    """
    environment = _environment(package)
    environment.filters |= filters or {}
    return environment.get_template(template).render(
        policy=policy(*scripts), scripts=[trusted(script) for script in scripts], **values
    )


def chart_page(chart: Any, title: str) -> str:
    """A page with one Altair chart, interactive."""
    scripts = libraries(), asset(__name__, "chart.js")
    return rendered(__name__, "chart.html", *scripts, title=title, payload=script_json(chart.to_dict()))


def policy(*scripts: str) -> str:
    """The Content-Security-Policy of a page that runs these scripts and nothing else.

    Examples
    --------
    >>> policy()
    "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    """
    allowed = " ".join(map(_sha256, scripts)) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def script_json(thing: Any) -> Any:
    r"""JSON for a script element, which it cannot end and in which it cannot open a comment.

    Examples
    --------
    >>> print(script_json({"server": "</script><!--"}))
    {"server":"\u003c/script\u003e\u003c!--"}
    """
    text = json.dumps(thing, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return trusted(text)


def trusted(text: str) -> Any:
    """Text of our own making that goes into a page as it is."""
    import markupsafe

    return markupsafe.Markup(text)


def asset(package: str, name: str) -> str:
    """A file that lies in a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def colours() -> str:
    """The script that takes the hues of the charts from the page's style."""
    return asset(__name__, "colours.js")


def style() -> Any:
    """The style of every page of our own."""
    return trusted(asset(__name__, "page.css"))


SHIPPED = "vega.js"
"""The file of :func:`libraries`: `make build` writes it, and the wheel has it."""


@functools.cache
def libraries() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, in a scope of their own."""
    shipped = resources.files(__name__).joinpath(SHIPPED)
    return shipped.read_text(encoding="utf-8") if shipped.is_file() else bundled()


def bundled() -> str:
    """That script from vl-convert, which takes a second or two."""
    import vl_convert

    return f"(()=>{{{vl_convert.javascript_bundle('window.vegaEmbed = vegaEmbed;')}}})();"


def _environment(package: str) -> jinja2.Environment:
    """What renders a package's pages; templates are kept compiled between runs."""
    import jinja2

    class Compiled(jinja2.BytecodeCache):
        @staticmethod
        def name(bucket: jinja2.bccache.Bucket) -> str:
            said = f"{package} {bucket.key} {jinja2.__version__}"
            return f"page-{hashlib.sha256(said.encode()).hexdigest()[:16]}-{sys.implementation.cache_tag}.bytecode"

        def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            content = recalled(self.name(bucket))
            if content is not None:
                bucket.bytecode_from_string(content)

        def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            keep(self.name(bucket), bucket.bytecode_to_string())

    return jinja2.Environment(
        loader=jinja2.FunctionLoader(functools.partial(asset, package)),
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
