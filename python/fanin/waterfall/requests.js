// The waterfalls. The script reads one JSON block, never builds HTML from text, and asks the network for nothing.
(() => {
  "use strict";
  const { dark, recoloured, config } = window.colours;
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const numbers = data.requests.map((r) => r.request);
  const bySpeed = data.requests.filter((r) => r.took_ms !== null).sort((a, b) => a.took_ms - b.took_ms).map((r) => r.request);
  const ROW = 17; // pixels for a message
  let chosen = data.chosen;

  /** The messages of a request as the figure's table. */
  function table(number) {
    const m = data.messages, rows = [];
    const ms = (name, i) => (m[name] && m[name][i] !== null ? m[name][i] / 1000 : null);
    m.request.forEach((of, i) => {
      if (of !== number || ms("answered_us", i) === null) return;
      rows.push({
        label: m.label[i], server: m.server[i], connection: m.connection[i], stage: m.stage[i] + 1,
        request_bytes: m.request_bytes[i], response_bytes: m.response_bytes[i],
        asked_ms: ms("asked_us", i), answered_ms: ms("answered_us", i),
        traced_from_ms: ms("traced_from_us", i), traced_to_ms: ms("traced_to_us", i),
      });
    });
    return rows;
  }

  async function draw(id, number) {
    const spec = recoloured(data.chart);
    spec.datasets = { ...spec.datasets, messages: table(number) };
    spec.config = config();
    spec.width = "container";
    spec.height = ROW * spec.datasets.messages.length;
    spec.autosize = { type: "fit-x", contains: "padding" };
    // `ast`: expressions are interpreted, not compiled, so the page's policy can forbid evaluation.
    await vegaEmbed(byId(id), spec, { mode: "vega-lite", ast: true, renderer: "svg", actions: false, tooltip: { theme: dark() ? "dark" : "light" } });
    byId(id).dataset.request = number;
  }

  function choose(number) {
    if (!numbers.includes(number)) {
      byId("said").textContent = `Request ${number} is not in this page.`;
      return Promise.resolve();
    }
    chosen = number;
    const request = data.requests[numbers.indexOf(number)];
    const took = request.took_ms === null ? "its end is not in the capture" : `${request.took_ms.toFixed(3)} ms`;
    byId("number").value = number;
    byId("said").textContent = `Request ${number}, ${(request.begin_ms / 1000).toFixed(6)} s after the start of the capture: ${took}.`;
    return draw("any", number);
  }

  /** Go so many places along a list of requests. */
  const step = (list, by) => () => {
    const at = list.indexOf(chosen);
    if (at >= 0 && list[at + by] !== undefined) choose(list[at + by]);
  };

  const drawAll = () => Promise.all([draw("typical", data.typical), draw("slow", data.slow), choose(chosen)]);

  byId("number").addEventListener("change", (event) => choose(Number(event.target.value)));
  byId("before").addEventListener("click", step(numbers, -1));
  byId("after").addEventListener("click", step(numbers, 1));
  byId("quicker").addEventListener("click", step(bySpeed, -1));
  byId("slower").addEventListener("click", step(bySpeed, 1));
  byId("theme").addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; drawAll(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll().then(() => { document.documentElement.dataset.ready = "true"; });
})();
