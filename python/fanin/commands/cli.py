"""Arguments and printing of the `fanin` command; the work is done by the functions that `import fanin` gives.

Heavy modules (Polars, Altair, the engine) are imported by the commands that need them: `fanin --help` must not wait.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fanin.commands import advise as advise_command
from fanin.commands import doctor as doctor_command
from fanin.commands import reproduce as reproduce_command
from fanin.commands import sweep as sweep_command
from fanin.commands import truth as truth_command
from fanin.commands.options import (
    CaptureArgument,
    ConfirmOption,
    Engine,
    JsonOption,
    RackOption,
    RankOfOption,
    algorithms,
    command_line,
    confirmed,
    settings_of,
)
from fanin.kernel import command as kernel_command
from fanin.terminal.answer import print_json

app = typer.Typer(
    name="fanin",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its imports alone take longer than the whole of `fanin --help` may
    help="Which TCP your data centre's many-to-one traffic needs, from a packet capture.",
    epilog="Start with:  fanin compare traffic.pcap",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Kind(StrEnum):
    """What there are registries of."""

    cc = "cc"
    queue = "queue"
    topology = "topology"
    workload = "workload"
    stack = "stack"
    hosts = "hosts"
    paper = "paper"


class RankBy(StrEnum):
    """What a ranking may be by; as :data:`fanin.statistics.ranking.STATISTICS`, which would load too much here."""

    mean = "mean"
    p50 = "p50"
    p95 = "p95"
    p99 = "p99"
    p99_9 = "p99_9"


ScenarioArgument = Annotated[
    Path, typer.Argument(metavar="SCENARIO", help="Scenario file (TOML).", show_default=False, readable=False)
]
GapOption = Annotated[
    str | None,
    typer.Option(
        "--gap",
        help="Idle gap that ends a train, such as 1ms [default: the connection's SRTT].",
        show_default=False,
    ),
]
FloorOption = Annotated[
    str | None,
    typer.Option(
        "--floor",
        help="Minimum gap when derived from SRTT (a tap near the receiver underestimates RTT) [default: 300us].",
        show_default=False,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a value of the file, such as topology.buffer=250p; repeatable."
    ),
]
SetRackOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a value of the rack, such as rack.buffer=250p; repeatable."
    ),
]
PcapAtOption = Annotated[
    list[str] | None,
    typer.Option(
        "--pcap-at",
        metavar="PLACE",
        help="Capture only there: a host, a switch, or a port such as 'switch->client'; * is anything; repeatable.",
    ),
]
SpansOption = Annotated[
    Path | None,
    typer.Option(
        "--spans",
        metavar="TRACES",
        help="Traces of the aggregator's application (OTLP JSON, Jaeger JSON, CSV peer,begin,end,request): requests are theirs.",
        readable=False,
    ),
]
EngineOption = Annotated[
    Engine,
    typer.Option(
        "--engine",
        help="sim: the simulator; kernel: real Linux TCP in virtual time (see fanin kernel); testbed: this Linux in real time (root).",
    ),
]
AggregatorOption = Annotated[
    str | None,
    typer.Option("--aggregator", metavar="IP", help="Receiver's IP address [default: detected from the traffic]."),
]


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    no_code: Annotated[
        bool,
        typer.Option(
            "--no-code",
            help="Refuse scenarios, racks and --cc that name code (a C file, py:module.Class); FANIN_NO_CODE=1 does the same.",
        ),
    ] = False,
) -> None:
    if version:
        from fanin import __version__

        typer.echo(f"fanin {__version__}")
        raise typer.Exit
    if no_code:
        from fanin.confined import refuse

        refuse()
    if not {"--help", "-h"}.intersection(sys.argv):
        from fanin import _native
        from fanin.process.limits import said_on

        _native.end_without_memory(said_on())


@app.command(short_help="Rank TCPs for a capture's traffic on a rack; writes a report.")
def compare(
    capture: CaptureArgument,
    rack: RackOption = None,
    cc: Annotated[
        str | None,
        typer.Option(
            "--cc",
            metavar="A,B,...",
            autocompletion=algorithms,
            help="Algorithms, separated by commas, or `all` [default: those that a Linux host can run].",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="CC",
            autocompletion=algorithms,
            help="Congestion control that the hosts run [default: what the capture shows, else cubic].",
        ),
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="N", help="Runs per algorithm; more narrow the confidence intervals.")
    ] = 10,
    rank_by: Annotated[
        RankBy | None,
        typer.Option(
            "--rank-by",
            help="Completion-time statistic that is to gain, and that orders the table [default: mean or tail; ordered by p99].",
            show_default=False,
        ),
    ] = None,
    rank_of: RankOfOption = None,
    independent: Annotated[
        bool,
        typer.Option("--independent", help="Replay every connection alone: no request waits for another connection."),
    ] = False,
    trace_seed: Annotated[
        int | None,
        typer.Option("--trace-seed", help="Seed whose queue and windows the report draws [default: the first]."),
    ] = None,
    aggregator: AggregatorOption = None,
    gap: GapOption = None,
    settings: SetRackOption = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            "--vary",
            metavar="KEY=A,B,...",
            help="Compare again with other values of the rack, such as buffer=50p,400p; repeatable.",
        ),
    ] = None,
    confirm: ConfirmOption = "0",
    engine: Annotated[
        Engine,
        typer.Option("--engine", help="Whose TCP runs: fanin's model, or real Linux in virtual time (docs/kernel.md)."),
    ] = Engine.sim,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Folder for report.html and tables [default: fanin-CAPTURE; none with --json].",
            show_default=False,
        ),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option(
            "--pcap",
            metavar="DIR",
            help="Folder for what hosts and ports saw in the traced seed's runs, as pcap files, a folder for each algorithm.",
        ),
    ] = None,
    pcap_at: PcapAtOption = None,
    spans: SpansOption = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE", help="Write the advised change as a plan for `fanin-host apply` (TOML)."
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a capture's traffic under every TCP on your rack, and rank them.

    Each request is sent after what it waited for in the capture: all responses of the request before, its own connection's response, or a timer.
    """
    from fanin.commands.compare import command

    code = command(
        capture,
        rack,
        cc=cc,
        vary=vary,
        out=out,
        plan=plan,
        pcap=pcap,
        as_json=as_json,
        line=command_line(),
        seeds=seeds,
        rank_by=None if rank_by is None else rank_by.value,
        baseline=baseline,
        rank_of=rank_of.value if rank_of is not None else None,
        independent=independent,
        trace_seed=trace_seed,
        aggregator=aggregator,
        gap=gap,
        settings=settings_of(settings, "rack.buffer=250p"),
        pcap_at=pcap_at or (),
        engine=engine.value,
        confirm=confirmed(confirm),
        spans=spans,
    )
    if code:
        sys.stdout.flush()
        sys.exit(code)


@app.command(short_help="Packet trains of a capture; a workload file.")
def trains(
    capture: CaptureArgument,
    gap: GapOption = None,
    floor: FloorOption = None,
    aggregator: AggregatorOption = None,
    rack: Annotated[
        Path | None,
        typer.Option(
            "--rack",
            metavar="RACK.toml",
            help="The rack that it was taken on: the rates of its links tell the servers' time from the network's.",
            readable=False,
        ),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(
            "--workload",
            metavar="FILE",
            help="Write the traffic to the aggregator as a file for the workload `replay`.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Folder for tables, plots and the workload file [default: none written]."
        ),
    ] = None,
    spans: SpansOption = None,
    spans_out: Annotated[
        Path | None,
        typer.Option(
            "--spans-out",
            metavar="FILE",
            help="Write each request as a trace (OTLP JSON), as tracing tools and --spans read it.",
        ),
    ] = None,
    request: Annotated[
        int | None,
        typer.Option(
            "--request",
            metavar="N",
            min=0,
            help="Request that requests.html in --out draws first where its reader chooses [default: the slowest].",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Packet trains of a capture: sizes, gaps, plots, each request as a waterfall, and a workload file for the workload `replay`."""
    from contextlib import nullcontext

    from fanin.capture.traffic import trains as run_trains
    from fanin.disk.files import output_file, output_folder
    from fanin.errors import ScenarioError
    from fanin.terminal import display

    if request is not None and out is None:
        raise ScenarioError("command line `--request`: it chooses what requests.html shows; add --out DIR")
    with output_folder(out) if out else nullcontext(None) as scratch:
        result = run_trains(capture, gap=gap, floor=floor, rack=rack, command=command_line(), progress=display.Bar)
        beside: list[str] = []
        read = [capture, spans]
        replay = traced = None
        if aggregator is not None or any(host["received_bytes"] for host in result.hosts):
            replay = result.workload(aggregator)
        if spans is not None:
            from fanin.spans import fit

            replay = replay or result.workload(aggregator)
            replay, told = fit(result, replay, spans)
            beside, traced = told.sentences(), told.placed
        if scratch is not None:
            result.write_files(scratch, aggregator=aggregator, replay=replay, request=request, traced=traced)
        if workload is not None:
            with output_file(workload, "--workload", of=read) as made:
                (replay or result.workload(aggregator)).write(made)
        if spans_out is not None:
            from fanin.spans import write

            replay = replay or result.workload(aggregator)
            beside.append(write(result, replay, spans_out, of=read).sentence(str(spans_out)))
    if as_json:
        print_json(result.to_dict(replay))
    else:
        display.trains_result(result)
    display.trains_notes(result, out)
    if replay is not None:
        display.requests_notes(replay)
    for sentence in beside:
        display.note(sentence)


@app.command(short_help="What changed between two captures, or two comparisons.")
def diff(
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="Capture, or folder of `fanin compare`.", readable=False)
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same kind, after the change.", readable=False)],
    rank_of: RankOfOption = None,
    aggregator: AggregatorOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two captures, or two comparisons, with intervals: to see whether a change helped."""
    from fanin.comparison.difference import diff as run_diff
    from fanin.comparison.difference import print_difference

    found = run_diff(before, after, aggregator=aggregator, rank_of=rank_of.value if rank_of is not None else None)
    if as_json:
        print_json(found.to_dict())
    else:
        print_difference(found)


@app.command(short_help="Propose a rack file from a capture.")
def rack(
    capture: CaptureArgument,
    aggregator: AggregatorOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Rack file to write [default: print it].")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Propose a rack file from a capture: link rate, delay, buffer and marking, each with its evidence."""
    from fanin.commands.rack import command

    command(capture, aggregator=aggregator, out=out, as_json=as_json, line=command_line())


@app.command()
def run(
    scenario: ScenarioArgument,
    cc: Annotated[
        str | None,
        typer.Option(
            "--cc",
            metavar="A,B,...",
            autocompletion=algorithms,
            help="Run with these algorithms instead of the scenario's.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Run with this seed only.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", help="Run with seeds 1 to N.")] = None,
    settings: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="DIR", help="Folder for tables (Parquet) and the summary [default: none written]."
        ),
    ] = None,
    pcap: Annotated[
        Path | None,
        typer.Option("--pcap", metavar="DIR", help="Folder for what hosts and ports saw, as pcap files for Wireshark."),
    ] = None,
    pcap_at: PcapAtOption = None,
    engine: EngineOption = Engine.sim,
    threads: Annotated[
        int,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            max=1024,
            help="Threads for each run; its results are the same for any number.",
        ),
    ] = 1,
    as_json: JsonOption = False,
) -> None:
    """Run one scenario."""
    from contextlib import nullcontext

    from fanin.disk.files import output_folder
    from fanin.simulation import run as run_scenario
    from fanin.terminal import display

    with output_folder(out) if out else nullcontext(None) as scratch:
        result = run_scenario(
            scenario,
            cc=cc.split(",") if cc is not None else None,
            seed=seed,
            seeds=seeds,
            settings=settings_of(settings),
            pcap=pcap,
            pcap_at=pcap_at or (),
            engine=engine.value,
            threads=threads,
            command=command_line(),
            progress=display.Bar,
        )
        if scratch is not None:
            result.write_files(scratch)
    if as_json:
        print_json(result.to_dict())
    else:
        display.run_result(result)
    display.run_notes(result, out)
    if pcap is not None:
        display.note(f"captures: {pcap}")
    _end(result)


app.command(short_help="Run published experiments again and judge their claims.")(reproduce_command.reproduce)


@app.command(
    short_help="Closed forms of the papers: thresholds, bounds, probabilities.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    options_metavar="[NAME] [OPTIONS]",
)
def model(context: typer.Context) -> None:
    """Evaluate the papers' closed forms: thresholds, bounds and probabilities. Without a name, list them."""
    from fanin.commands.model import command

    command(context.args)


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    short_help="Load kernel twins into this Linux and take them back.",
    options_metavar="check | load | status | unload | params | route | trial",
)
def linux(context: typer.Context) -> None:
    """Load fanin's kernel twins into this running Linux, try them on one destination, take them back. Root."""
    from fanin.linux.command import command

    command(context.args)


@app.command(short_help="Draw a scenario's network.")
def draw(
    scenario: ScenarioArgument,
    settings: SetOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Picture file: svg, png, pdf or html [default: SCENARIO.svg]."),
    ] = None,
) -> None:
    """Draw a scenario's network: hosts, switches, links with rate, delay and buffers."""
    from fanin.pictures.drawing import draw as draw_scenario
    from fanin.pictures.files import save
    from fanin.terminal import display

    file = out or Path(f"{scenario.stem}.svg")
    save(draw_scenario(scenario, settings=settings_of(settings)), file, of=[scenario])
    display.note(f"picture: {file}")


app.add_typer(kernel_command.app, name="kernel")
app.command()(doctor_command.doctor)


@app.command(name="list", short_help="List algorithms, queues, topologies, workloads, profiles, papers.")
def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """List registered algorithms, queues, topologies, workloads, profiles and papers."""
    from fanin import __version__
    from fanin.registries import entries
    from fanin.terminal import display

    found = entries(kind.value)
    if as_json:
        rows = [entry.to_dict() for entry in found]
        print_json({"version": __version__, "command": f"fanin list {kind.value}", "kind": kind.value, "entries": rows})
    else:
        display.entries(kind.value, found)


app.command("advise")(advise_command.advise)
app.command("truth")(truth_command.truth)
app.command("sweep")(sweep_command.sweep)
app.command("query")(sweep_command.query)
app.command("plot")(sweep_command.plot)
app.add_typer(sweep_command.store_app)


def _end(result: Any) -> None:
    """Exit codes of runs that gave results, but not all."""
    if result.interrupted:
        sys.stdout.flush()
        sys.exit(130)
    if result.failures:
        raise typer.Exit(1)
