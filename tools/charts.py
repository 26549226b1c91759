"""Write the script of the pages' charts beside the module that reads it, once for each version of vl-convert."""

from pathlib import Path

from fanin import html

Path(html.__file__).with_name(html.SHIPPED).write_text(html.bundled(), encoding="utf-8")
