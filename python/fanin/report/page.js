// The page's controls and figures. It reads one JSON block, never builds HTML from text, and asks the network for nothing.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const names = data.algorithms.map((a) => a.name);
  const state = {
    shown: new Set(data.algorithms.filter((a) => a.shown).map((a) => a.name)),
    statistic: data.rankBy,
    of: data.rankOf,
    tail: true,
    seed: data.tracedSeeds[0],
    connection: data.connections.length ? data.connections[0].connection : null,
    span: [0, data.endMs],
  };
  let runs = { responses: [], queue: [], window: [] }; // until unpacked

  const { dark, recoloured, config } = window.colours;

  // ---- figures: drawn once, then fed ----------------------------------------------------------------------------------------

  const figures = new Map(); // element id -> { chart, result }
  const queues = new Map(); // element id -> the last of what is being drawn there, so that drawings never overtake each other

  function inTurn(id, work) {
    const next = (queues.get(id) || Promise.resolve()).then(work);
    const settled = next.catch((error) => {
      byId(id).dataset.error = String(error);
      byId(id).textContent = `This figure could not be drawn (${error}); the tables have its numbers.`;
    });
    queues.set(id, settled);
    return settled;
  }

  /** Draws `chart` in element `id` with these tables and parameters; feeds the drawing that is there when it is the same one. */
  function draw(id, chart, tables, parameters = {}, { renderer = "svg", strips = false, fresh = false } = {}) {
    return inTurn(id, async () => {
      const element = byId(id), old = figures.get(id);
      element.dataset.algorithms = names.filter((n) => Object.values(tables).some((rows) => rows.some((r) => r.cc === n))).join(" ");
      element.dataset.rows = Object.values(tables).reduce((sum, rows) => sum + rows.length, 0);
      if (!Number(element.dataset.rows)) { // nothing to draw, and scales without an extent
        if (old) old.result.finalize();
        figures.delete(id);
        element.replaceChildren();
        return;
      }
      if (old && old.chart === chart && !fresh) {
        const view = old.result.view;
        for (const [name, value] of Object.entries(parameters)) view.signal(name, value);
        for (const [name, rows] of Object.entries(tables)) view.data(name, rows);
        await view.resize().runAsync();
        if (strips) await fit(element, view);
        return;
      }
      if (old) old.result.finalize();
      const spec = recoloured(data.charts[chart]);
      spec.datasets = { ...spec.datasets, ...tables };
      spec.config = config();
      spec.params = (spec.params || []).map((p) => (p.name in parameters ? { ...p, value: parameters[p.name] } : p));
      if (strips) spec.spec.width = Math.max(160, element.clientWidth - 58);
      else { spec.width = "container"; spec.autosize = { type: "fit-x", contains: "padding" }; }
      // `ast`: expressions are interpreted, not compiled, so the page's policy can forbid evaluation.
      const result = await vegaEmbed(element, spec, { mode: "vega-lite", ast: true, renderer, actions: false, tooltip: { theme: dark() ? "dark" : "light" } });
      figures.set(id, { chart, result });
      if (strips) await fit(element, result.view);
    });
  }

  /** Makes strips exactly as wide as the page: what stands beside them is known only once it is drawn. */
  async function fit(element, view) {
    const over = element.querySelector("canvas").clientWidth - element.clientWidth;
    if (over) await view.signal("child_width", Math.max(100, view.signal("child_width") - over)).resize().runAsync();
  }

  const shownOnly = (rows) => rows.filter((row) => state.shown.has(row.cc));
  const finite = (value) => value !== null && value !== undefined;
  const brief = (value) => Number(value.toPrecision(3)).toLocaleString("en");

  function drawBars(fresh) {
    const rows = data.estimates.filter((e) => e.of === state.of && e.statistic === state.statistic).map((e) => ({
      ...e,
      low: finite(e.low) ? Math.max(0, e.low) : null,
      reach: finite(e.high) ? e.high : finite(e.value) ? e.value : 0,
      label: (finite(e.value) ? `${brief(e.value)} ms` : "too many unfinished") + (data.algorithms[names.indexOf(e.cc)].needsEcn ? "  · needs marking" : ""),
      shown: state.shown.has(e.cc),
      usual: e.cc === data.baseline,
    }));
    const room = byId("bars").clientWidth > 600 ? 1.25 : 1.9; // for the labels
    byId("bars").dataset.statistic = state.statistic;
    byId("bars").dataset.of = state.of;
    return draw("bars", "bars", { estimates: rows }, { greatest: Math.max(1e-9, ...rows.map((r) => r.reach)) * room }, { fresh });
  }

  function drawDistribution(fresh) {
    byId("view-cdf").setAttribute("aria-pressed", String(!state.tail));
    byId("view-tail").setAttribute("aria-pressed", String(state.tail));
    const curves = data.curves.filter((row) => row.of === state.of);
    const least = curves.reduce((l, row) => Math.min(l, row.beyond), 0.01);
    byId("distribution").dataset.of = state.of;
    return draw("distribution", state.tail ? "tail" : "cdf", { curves: shownOnly(curves) }, { least }, { fresh });
  }

  function drawResponses(fresh) {
    const rows = [];
    for (const run of runs.responses) {
      if (run.seed !== state.seed || !state.shown.has(run.cc)) continue;
      const slowest = run.completion.reduce((most, c) => (finite(c) && c > most ? c : most), 0) || data.endMs;
      run.ms.forEach((ms, i) => {
        const done = finite(run.completion[i]);
        rows.push({ cc: run.cc, ms, completion: Math.max(1e-6, done ? run.completion[i] : slowest), outcome: done ? "done" : "unfinished", connection: run.connection[i], bytes: run.bytes[i], timeouts: run.timeouts[i] });
      });
    }
    byId("responses").dataset.seed = state.seed;
    const whole = state.span[0] <= 0 && state.span[1] >= data.endMs;
    const span = whole ? [] : [{ from: state.span[0], to: state.span[1] }];
    return draw("responses", "responses", { responses: rows, span }, { end_ms: data.endMs }, { renderer: "canvas", fresh });
  }

  function drawStrips(fresh) {
    const traced = data.tracedSeeds.includes(state.seed);
    const [from, to] = state.span, bins = 1200, queue = [], window = [];
    for (const run of traced ? runs.queue : []) {
      if (run.seed !== state.seed || !state.shown.has(run.cc)) continue;
      for (const [ms, value] of envelope(times(run), run.packets, from, to, bins)) queue.push({ cc: run.cc, ms, value, kind: "queue" });
      for (const [kind, value] of [["buffer", data.bufferPackets], ["mark", data.markPackets]]) {
        if (finite(value)) queue.push({ cc: run.cc, ms: from, value, kind }, { cc: run.cc, ms: to, value, kind });
      }
    }
    for (const run of traced ? runs.window : []) {
      if (run.seed !== state.seed || run.connection !== state.connection || !state.shown.has(run.cc)) continue;
      for (const [kind, values] of [["cwnd", run.cwnd], ["ssthresh", run.ssthresh]]) {
        for (const [ms, value] of envelope(times(run), values, from, to, bins)) if (finite(value)) window.push({ cc: run.cc, ms, value: Math.max(value, 0.5), kind });
      }
      for (const ms of run.timeouts) if (ms >= from && ms <= to) window.push({ cc: run.cc, ms, kind: "timeout" });
    }
    const note = byId("untraced");
    note.hidden = traced;
    if (!traced) {
      const command = byId("command").textContent.replace(/ --trace-seed \S+/, "");
      note.textContent = `Queue and windows were recorded for seed ${data.tracedSeeds.join(", ")}. For seed ${state.seed}: ${command} --trace-seed ${state.seed}`;
    }
    const server = (data.connections.find((c) => c.connection === state.connection) || {}).server;
    byId("window-of").textContent = server === undefined ? "the sender" : `${server}, connection ${state.connection}`;
    byId("time-seed").textContent = state.seed;
    for (const id of ["queue", "window"]) Object.assign(byId(id).dataset, { seed: state.seed, connection: state.connection, from, to });
    const options = { renderer: "canvas", strips: true, fresh }, span = { from_ms: from, to_ms: to };
    return Promise.all([draw("queue", "queue", { queue }, span, options), draw("window", "window", { window }, span, options)]);
  }

  /** Times of a trace in ms, from its steps in ns; kept once computed. */
  function times(run) {
    if (!run.ms) {
      let sum = 0;
      run.ms = run.dt.map((step) => (sum += step) / 1e6);
    }
    return run.ms;
  }

  /** A step function between two times, at most four points per bin: first, least, greatest, last. */
  function envelope(ms, values, from, to, bins) {
    const points = [], width = (to - from) / bins || 1;
    let i = 0;
    while (i < ms.length && ms[i] <= from) i++;
    if (i > 0) points.push([from, values[i - 1]]);
    while (i < ms.length && ms[i] <= to) {
      const bin = Math.floor((ms[i] - from) / width), kept = [i, i, i, i];
      for (; i < ms.length && ms[i] <= to && Math.floor((ms[i] - from) / width) === bin; i++) {
        if (values[i] < values[kept[1]]) kept[1] = i;
        if (values[i] > values[kept[2]]) kept[2] = i;
        kept[3] = i;
      }
      for (const k of [...new Set(kept)].sort((a, b) => a - b)) points.push([ms[k], values[k]]);
    }
    if (points.length) points.push([to, points[points.length - 1][1]]);
    return points;
  }

  function drawTrains(fresh) {
    return Promise.all(["sizes", "gaps"].map((id) => draw(id, id, { [id]: data.trains[id] }, {}, { fresh })));
  }

  function drawAll(fresh = false) {
    return Promise.all([drawBars(fresh), drawDistribution(fresh), drawResponses(fresh), drawStrips(fresh), drawTrains(fresh)]);
  }

  // ---- one response, packet by packet ----------------------------------------------------------------------------------------

  const SILENCE = 0.02; // of the response: a longer time without a packet is drawn as this much
  const steps = { of: null, at: 0, list: [] };

  function svgElement(name, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  const span = (ms) => (ms < 1 ? `${brief(ms * 1000)} µs` : `${brief(ms)} ms`);

  /** Packets: entry to the port and delivery, joined; drops and marks noted. */
  function packetsOf(found) {
    const list = [], waiting = [];
    for (const [ms, kind, seq, payload] of found.events) {
      if (kind === "a") { const p = { ms, seq, payload, kind: "packet", out: null }; list.push(p); waiting.push(p); }
      else if (kind === "m") { const p = waiting.findLast((w) => w.seq === seq); if (p) p.marked = true; }
      else if (kind === "x") list.push({ ms, seq, payload, kind: "dropped", out: null });
      else {
        const index = waiting.findIndex((w) => w.seq === seq);
        if (index >= 0) { waiting[index].out = ms; waiting.splice(index, 1); }
      }
    }
    return list;
  }

  /** Time on the page: silences shortened. */
  function shortened(times, whole) {
    const most = whole * SILENCE, knots = [[0, 0]], breaks = [];
    let drawn = 0, last = 0;
    for (const ms of [...times, whole]) {
      const gap = ms - last;
      if (gap > most) breaks.push([drawn, drawn + most, gap]);
      drawn += Math.min(gap, most);
      last = ms;
      knots.push([ms, drawn]);
    }
    const place = (ms) => {
      let i = knots.findIndex((k) => k[0] >= ms);
      if (i < 0) return drawn;
      if (i === 0) return 0;
      const [a, b] = [knots[i - 1], knots[i]];
      return b[0] === a[0] ? b[1] : a[1] + ((ms - a[0]) / (b[0] - a[0])) * (b[1] - a[1]);
    };
    return { place, whole: drawn, breaks };
  }

  function drawSequence() {
    const found = steps.of, figure = byId("sequence"), width = Math.max(320, figure.clientWidth);
    const times = found.events.map((e) => e[0]);
    const clock = shortened(times, found.took);
    const narrow = width < 560; // two rows of headings where one has no room
    const height = Math.min(1400, Math.max(320, steps.list.length * 9)), top = narrow ? 40 : 24, second = narrow ? 30 : 14;
    const y = (ms) => top + (clock.place(ms) / (clock.whole || 1)) * (height - top - 10);
    const left = 74, right = left + (width - left) * 0.42, w0 = right + 24, w1 = w0 + (width - right) * 0.4, q0 = w1 + 24, q1 = width - 8;
    const svg = svgElement("svg", { viewBox: `0 0 ${width} ${height}`, height });
    const add = (name, attributes, text) => svg.append(svgElement(name, attributes, text));
    for (const [x, at, label, anchor] of [[left, 14, "port of the switch", "start"], [right, second, "aggregator", "end"]]) {
      add("line", { class: "lane", x1: x, x2: x, y1: top, y2: height });
      add("text", { x, y: at, "text-anchor": anchor }, label);
    }
    add("text", { x: w0, y: 14 }, narrow ? "window" : "window, packets");
    add("text", { x: q0, y: 14 }, narrow ? "queue" : "queue, packets");
    const silences = [];
    for (const [from, to, gap] of clock.breaks) {
      const at = (d) => top + (d / (clock.whole || 1)) * (height - top - 10);
      add("line", { class: "break", x1: left, x2: q1, y1: (at(from) + at(to)) / 2, y2: (at(from) + at(to)) / 2 });
      silences.push([(at(from) + at(to)) / 2 - 3, `${span(gap)} without a packet`]);
    }
    let labelled = -20;
    steps.list.forEach((p, i) => {
      const now = i === steps.at ? " now" : "";
      if (y(p.ms) - labelled > 16) { add("text", { x: left - 6, y: y(p.ms) + 4, "text-anchor": "end" }, span(p.ms)); labelled = y(p.ms); }
      if (p.kind === "dropped") add("path", { class: `dropped${now}`, d: `M${left - 4} ${y(p.ms) - 4}l8 8m0 -8l-8 8` });
      else add("line", { class: `packet${p.marked ? " marked" : ""}${now}`, x1: left, y1: y(p.ms), x2: p.out === null ? left + 8 : right, y2: y(p.out ?? p.ms) });
    });
    const stepLine = (points, from, to) => {
      const most = Math.max(1, ...points.map((p) => p[1]));
      const x = (v) => from + (v / most) * (to - from);
      let d = "";
      points.forEach((p, i) => { d += i ? `V${y(p[0])}H${x(p[1])}` : `M${x(p[1])} ${y(p[0])}`; });
      return { d, x, most };
    };
    if (found.window.length) {
      const line = stepLine(found.window, w0, w1);
      add("path", { class: "line", d: `${line.d}V${height - 10}` });
      for (const [ms, , flight] of found.window) add("circle", { class: "dot", cx: Math.min(w1, line.x(flight)), cy: y(ms), r: 1.3 });
      add("text", { x: w1, y: second, "text-anchor": "end" }, `0 to ${brief(line.most)}`);
    }
    if (found.queue.length) {
      const line = stepLine(found.queue, q0, q1);
      add("path", { class: "area", d: `M${q0} ${y(found.queue[0][0])}H${line.x(found.queue[0][1])}${line.d.replace(/^M[^VH]*/, "")}H${q0}Z` });
      add("text", { x: q1, y: second, "text-anchor": "end" }, `0 to ${brief(line.most)}`);
    }
    for (const [at, told] of silences) add("text", { class: "silence", x: left + 6, y: at }, told);
    figure.replaceChildren(svg);
    figure.dataset.packets = steps.list.length;
  }

  const lastBefore = (points, ms) => points.reduce((found, p) => (p[0] <= ms ? p : found), points[0]);

  function sayStep() {
    const p = steps.list[steps.at], found = steps.of;
    if (!p) { byId("step-now").textContent = "No packet of it passed the port."; return; }
    const queue = found.queue.length ? lastBefore(found.queue, p.ms)[1] : null, window = found.window.length ? lastBefore(found.window, p.ms) : null;
    const what = p.kind === "dropped" ? "is dropped: the queue is full" : `enters the queue${p.marked ? ", is marked (CE)" : ""}${p.out === null ? "" : `, and is delivered ${span(p.out - p.ms)} later`}`;
    byId("step-now").textContent = `${steps.at + 1} of ${steps.list.length}, at ${span(p.ms)}: bytes ${p.seq.toLocaleString("en")} to ${(p.seq + p.payload).toLocaleString("en")} ${what}`
      + (queue === null ? "" : `; ${queue} in the queue`) + (window === null ? "" : `; window ${brief(window[1])}, in flight ${brief(window[2])}`) + ".";
    byId("step-at").value = steps.at;
  }

  function goTo(step) {
    steps.at = Math.max(0, Math.min(steps.list.length - 1, step));
    drawSequence();
    sayStep();
  }

  function explain(cc) {
    steps.of = data.slowest.find((s) => s.cc === cc) || data.slowest[0];
    steps.list = packetsOf(steps.of);
    byId("step-cc").value = steps.of.cc;
    byId("step-why").textContent = steps.of.why + (steps.of.more ? ` (The first ${steps.of.events.length} events are drawn.)` : "");
    byId("step-at").max = Math.max(0, steps.list.length - 1);
    goTo(0);
  }

  function makeSteps() {
    if (!data.slowest.length) return;
    byId("why").hidden = false;
    for (const s of data.slowest) byId("step-cc").append(option(s.cc, s.cc));
    byId("step-cc").addEventListener("change", (event) => explain(event.target.value));
    byId("step-first").addEventListener("click", () => goTo(0));
    byId("step-back").addEventListener("click", () => goTo(steps.at - 1));
    byId("step-next").addEventListener("click", () => goTo(steps.at + 1));
    byId("step-at").addEventListener("input", (event) => goTo(Number(event.target.value)));
    byId("step-gap").addEventListener("click", () => {
      let best = 0;
      for (let i = 1; i < steps.list.length; i++) if (steps.list[i].ms - steps.list[i - 1].ms > steps.list[best + 1 < steps.list.length ? best + 1 : best].ms - steps.list[best].ms) best = i - 1;
      goTo(best);
    });
    explain(data.baseline && data.slowest.some((s) => s.cc === data.baseline) ? data.baseline : data.slowest[0].cc);
  }

  // ---- controls -------------------------------------------------------------------------------------------------------------

  function swatch(index) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const dash = ["", "5 2", "1.5 2"][Math.min(2, Math.floor(index / 8))];
    for (const [k, v] of Object.entries({ x1: 0, x2: 20, y1: 4, y2: 4, "stroke-width": 3, "stroke-dasharray": dash })) line.setAttribute(k, v);
    line.style.stroke = `var(--hue-${(index % 8) + 1})`;
    svg.setAttribute("viewBox", "0 0 20 8");
    svg.setAttribute("aria-hidden", "true");
    svg.append(line);
    return svg;
  }

  function show(chosen) {
    state.shown = new Set(chosen);
    for (const chip of byId("chips").children) chip.setAttribute("aria-pressed", String(state.shown.has(chip.dataset.cc)));
    return Promise.all([drawBars(), drawDistribution(), drawResponses(), drawStrips()]);
  }

  function makeChips() {
    names.forEach((name, index) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.dataset.cc = name;
      chip.setAttribute("aria-pressed", String(state.shown.has(name)));
      chip.append(swatch(index), name);
      chip.addEventListener("click", () => {
        const next = new Set(state.shown);
        if (!next.delete(name)) next.add(name);
        if (next.size) show(next);
      });
      byId("chips").append(chip);
    });
    const presets = { leaders: data.algorithms.filter((a) => a.shown).map((a) => a.name), all: names };
    for (const button of document.querySelectorAll("[data-preset]")) button.addEventListener("click", () => show(presets[button.dataset.preset]));
  }

  function option(value, text) {
    const element = document.createElement("option");
    element.value = value;
    element.textContent = text;
    return element;
  }

  function setSpan(from, to) {
    const low = Math.max(0, Math.min(from, to)), high = Math.min(data.endMs, Math.max(from, to));
    if (!(high > low)) return;
    state.span = [low, high];
    byId("from").value = Number(low.toFixed(3));
    byId("to").value = Number(high.toFixed(3));
    drawResponses();
    drawStrips();
  }

  /** Around the slowest response of what hosts are presumed to run, else of the first algorithm shown. */
  function goToSlowest() {
    const of = state.shown.has(data.baseline) ? data.baseline : names.find((n) => state.shown.has(n));
    const run = runs.responses.find((r) => r.cc === of && r.seed === state.seed);
    if (!run || !run.ms.length) return;
    let worst = 0;
    run.completion.forEach((c, i) => { if (finite(c) && c > (run.completion[worst] ?? -1)) worst = i; });
    const took = run.completion[worst] ?? data.endMs - run.ms[worst], room = Math.max(took * 0.15, 0.2);
    if (data.connections.some((c) => c.connection === run.connection[worst])) {
      state.connection = run.connection[worst];
      byId("connection").value = state.connection;
    }
    setSpan(run.ms[worst] - room, run.ms[worst] + took + room);
  }

  function dragToZoom() {
    const figure = byId("responses");
    let start = null;
    const at = (event) => {
      const { view } = figures.get("responses").result;
      const box = figure.querySelector("canvas").getBoundingClientRect();
      return view.scale("x").invert(Math.min(Math.max(event.clientX - box.left - view.origin()[0], 0), view.width()));
    };
    figure.addEventListener("pointerdown", (event) => { if (figures.has("responses") && event.button === 0) start = { x: event.clientX, ms: at(event) }; });
    addEventListener("pointerup", (event) => {
      if (!start) return;
      if (Math.abs(event.clientX - start.x) > 4) setSpan(start.ms, at(event));
      start = null;
    });
    addEventListener("pointermove", (event) => {
      if (start && Math.abs(event.clientX - start.x) > 4) figures.get("responses").result.view.data("span", [{ from: Math.min(start.ms, at(event)), to: Math.max(start.ms, at(event)) }]).runAsync();
    });
  }

  function sortable(table) {
    const body = table.querySelector("tbody.simulated"), rows = [...body.rows];
    for (const button of table.querySelectorAll("button[data-column]")) {
      button.addEventListener("click", () => {
        const column = Number(button.dataset.column), header = button.closest("th");
        const up = header.getAttribute("aria-sort") !== "ascending";
        for (const th of table.querySelectorAll("th[aria-sort]")) th.removeAttribute("aria-sort");
        header.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => row.cells[column].dataset.value;
        const compare = (a, b) => {
          const x = value(a), y = value(b);
          if (x === "" || y === "") return (x === "") - (y === ""); // what has no value comes last either way
          const order = header.classList.contains("text") && column === 1 ? x.localeCompare(y) : Number(x) - Number(y);
          return up ? order : -order;
        };
        const sorted = [...rows].sort(compare);
        const byRank = column === 0 && up;
        for (const row of sorted) row.classList.toggle("tier", byRank && row.dataset.tier === "true");
        body.append(...sorted);
      });
    }
    for (const row of rows) row.dataset.tier = String(row.classList.contains("tier"));
  }

  async function copyFrom(button) {
    const command = button.parentElement.querySelector("pre");
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "copied";
    } catch {
      getSelection().selectAllChildren(command); // the browser does not let pages copy: one key press is left to the reader
      button.textContent = "selected";
    }
  }

  /** Says that a table goes on where the window cuts it. */
  function sayMore() {
    for (const more of document.querySelectorAll(".more")) {
      const box = more.nextElementSibling;
      more.hidden = box.scrollWidth <= box.clientWidth + 1;
      box.classList.toggle("cut", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    }
  }

  function listen() {
    for (const choice of document.querySelectorAll("select.of")) {
      choice.addEventListener("change", () => {
        state.of = choice.value;
        for (const other of document.querySelectorAll("select.of")) other.value = state.of;
        drawBars();
        drawDistribution();
      });
    }
    byId("statistic").addEventListener("change", (event) => { state.statistic = event.target.value; drawBars(); });
    byId("view-cdf").addEventListener("click", () => { state.tail = false; drawDistribution(); });
    byId("view-tail").addEventListener("click", () => { state.tail = true; drawDistribution(); });
    byId("seed").addEventListener("change", (event) => { state.seed = Number(event.target.value); drawResponses(); drawStrips(); });
    byId("connection").addEventListener("change", (event) => { state.connection = Number(event.target.value); drawStrips(); });
    for (const id of ["from", "to"]) byId(id).addEventListener("change", () => setSpan(Number(byId("from").value), Number(byId("to").value)));
    byId("whole").addEventListener("click", () => setSpan(0, data.endMs));
    byId("slowest").addEventListener("click", goToSlowest);
    for (const button of document.querySelectorAll(".command button")) button.addEventListener("click", () => copyFrom(button));
    for (const box of document.querySelectorAll(".more + .scroll")) box.addEventListener("scroll", sayMore);
    sayMore();
    byId("theme").addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; drawAll(true); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawAll(true));
    let width = innerWidth, pending;
    addEventListener("resize", () => {
      if (innerWidth === width) return;
      width = innerWidth;
      sayMore();
      clearTimeout(pending);
      pending = setTimeout(() => { drawBars(); drawStrips(true); if (steps.of) drawSequence(); }, 120);
    });
  }

  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  }

  async function start() {
    makeChips();
    sortable(byId("ranking"));
    for (const seed of data.seeds) byId("seed").append(option(seed, data.tracedSeeds.includes(seed) ? String(seed) : `${seed} (responses only)`));
    byId("seed").value = state.seed;
    for (const c of data.connections) byId("connection").append(option(c.connection, `${c.connection}: ${c.server}`));
    byId("from").value = 0;
    byId("to").value = Number(data.endMs.toFixed(3));
    listen();
    makeSteps();
    await Promise.all([drawBars(), drawDistribution(), drawTrains()]);
    runs = await unpack(data.packed);
    dragToZoom();
    await Promise.all([drawResponses(), drawStrips()]);
    document.documentElement.dataset.ready = "true";
  }

  start();
})();
