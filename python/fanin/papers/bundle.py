"""`fanin reproduce --bundle`: verdicts, data, scenarios and checksums in one archive that another machine verifies."""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from fanin import _native
from fanin.disk.files import ROWS, output_folder, read_parquet
from fanin.disk.scratch import scratch_folder
from fanin.errors import FaninError
from fanin.papers.pages import digest
from fanin.process.progress import Progress, silent

if TYPE_CHECKING:
    from fanin.papers.reproduce import ReproduceResult

MANIFEST = "manifest.json"
FORMAT = 1
MOST = 4_000_000_000
"""Bytes of an archive's files, unpacked."""


class BundleError(FaninError, ValueError):
    """An archive that cannot be used."""


def write(result: ReproduceResult, names: list[str], file: Path) -> None:
    """Write the archive of what was run.

    Parameters
    ----------
    result : ReproduceResult
        Verdicts and evidence.
    names : list of str
        What was asked for, as `fanin.reproduce` takes it.
    file : Path
        Where to.
    """
    data: dict[str, str] = {}
    with (
        output_folder(file.parent, "--bundle") as scratch,
        zipfile.ZipFile(scratch / file.name, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for claim, evidence in result.evidence.items():
            for experiment, frames in evidence.frames.items():
                for name, rows in frames.items():
                    place = f"data/{claim}/{experiment}.{name}.parquet"
                    packed = io.BytesIO()
                    rows.write_parquet(packed)
                    archive.writestr(place, packed.getvalue())
                    data[place] = digest(rows)
        for paper in result.papers:
            for source in sorted(paper.folder.rglob("*")):
                if source.suffix in (".toml", ".py", ".md"):
                    archive.write(source, f"papers/{paper.folder.name}/{source.relative_to(paper.folder).as_posix()}")
        archive.writestr("claims.json", json.dumps(result.to_dict(), indent=1, allow_nan=False))
        told = {"format": FORMAT, "version": result.version, "asked": names, "quick": result.quick, "data": data}
        told |= {"set": {key: str(value) for key, value in result.settings.items()}, "seeds": result.seeds}
        archive.writestr(MANIFEST, json.dumps(told, indent=1))


def verify(
    file: Path, *, fresh: bool = False, progress: Callable[[str, int], Progress] = silent
) -> tuple[list[str], int]:
    """Run what an archive holds again.

    Returns
    -------
    list of str
        What is not as in the archive, a sentence each; empty if all is.
    int
        How many frames were compared.

    Raises
    ------
    BundleError
        When the file is no such archive, or of another version of fanin, whose results may rightly differ.
    """
    from fanin.papers.reproduce import reproduce

    told, claims, frames = _read(file)
    if told["version"] != _native.VERSION:
        raise BundleError(
            f"{file}: it is of fanin {told['version']} and this is {_native.VERSION}; install that version"
        )
    wrong = [
        f"{place}: the data are not what the manifest says"
        for place, rows in frames.items()
        if digest(rows) != told["data"][place]
    ]
    again = reproduce(
        told["asked"],
        quick=told["quick"],
        settings=told["set"],
        seeds=told["seeds"],
        fresh=fresh,
        progress=progress,
    )
    ours = {one.id: one for one in again.claims}
    for one in claims["claims"]:
        mine = ours.get(one["id"])
        if mine is None or (mine.verdict, mine.ours) != (one["verdict"], one["ours"]):
            here = "not run" if mine is None else f"{mine.verdict}: {mine.ours}"
            wrong.append(f"{one['id']}: {one['verdict']} ({one['ours']}) in the archive, here {here}")
    here_data = {
        f"data/{claim}/{experiment}.{name}.parquet": digest(rows)
        for claim, evidence in again.evidence.items()
        for experiment, made in evidence.frames.items()
        for name, rows in made.items()
    }
    wrong += [f"{place}: other data here" for place, known in told["data"].items() if here_data.get(place) != known]
    return wrong, len(told["data"])


def _read(file: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, pl.DataFrame]]:
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(about.file_size for about in archive.infolist()) > MOST:
                raise BundleError(f"{file}: it holds more than {MOST // 10**9} GB")
            told, claims = (json.loads(archive.read(name)) for name in (MANIFEST, "claims.json"))
            _check(told, claims)
            frames = dict(zip(told["data"], _rows(archive, told["data"]), strict=True))
    except OSError as error:
        raise BundleError(f"{file}: it cannot be read ({(error.strerror or 'unknown reason').lower()})") from error
    except BundleError:
        raise
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        # RuntimeError: nested too deeply, encrypted, or packed in a way that is not known here.
        raise BundleError(f"{file}: it is no archive of `fanin reproduce --bundle`") from error
    return told, claims, frames


def _rows(archive: zipfile.ZipFile, places: Iterable[str]) -> list[pl.DataFrame]:
    with scratch_folder(tempfile.gettempdir(), ROWS) as folder:
        files = []
        for number, place in enumerate(places):
            files.append(folder / f"{number}.parquet")
            files[-1].write_bytes(archive.read(place))
        return read_parquet(*files)


def _check(told: dict[str, Any], claims: dict[str, Any]) -> None:
    """The manifest and the claims have the types that `write` gives them, or it is an error."""
    texts = [told["version"], *told["asked"], *told["set"].items(), *told["data"].items()]
    texts += [claim[key] for claim in claims["claims"] for key in ("id", "verdict", "ours")]
    flat = [text for each in texts for text in (each if isinstance(each, tuple) else (each,))]
    if not all(isinstance(text, str) for text in flat) or not isinstance(told["asked"], list):
        raise TypeError
    if not isinstance(told["quick"], bool) or not isinstance(told["seeds"], int | None):
        raise TypeError
