// Draws the page's only chart, from its JSON block.
(async () => {
  "use strict";
  const place = document.getElementById("chart");
  const spec = JSON.parse(document.getElementById("data").textContent);
  // Beside a chart stand its axis and the button that saves it.
  const BESIDE = 75, LETTER = 7.5;
  const room = place.clientWidth - 40;
  const width = (part) => (typeof part.width === "number" ? part.width : 0) + BESIDE;
  const rows = (text, most) => {
    const lines = [""];
    for (const word of [text].flat().join(" ").split(" ")) {
      const longer = `${lines.at(-1)} ${word}`.trim();
      if (longer.length <= most || lines.at(-1) === "") lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  };
  if (spec.hconcat && spec.hconcat.reduce((sum, part) => sum + width(part), 0) > room) {
    spec.vconcat = spec.hconcat;
    delete spec.hconcat;
  }
  for (const part of [spec, ...(spec.vconcat ?? [])]) {
    // A picture without axes has its own proportions.
    const drawn = [part, ...(part.layer ?? [])].map((layer) => layer.encoding?.x).find((x) => x);
    if (width(part) > room && drawn && drawn.axis !== null) part.width = Math.max(160, room - BESIDE);
    const title = part.title;
    if (typeof title === "string" || Array.isArray(title)) part.title = rows(title, room / LETTER);
    else if (title?.text) {
      title.text = rows(title.text, room / LETTER);
      if (title.subtitle) title.subtitle = rows(title.subtitle, room / LETTER);
    }
  }
  try {
    // `ast`: expressions are interpreted, not compiled, so the page's policy can forbid evaluation.
    await vegaEmbed(place, spec, { mode: "vega-lite", ast: true, renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false } });
    place.dataset.drawn = "yes";
  } catch (error) {
    place.textContent = `The chart could not be drawn (${error}).`;
  }
})();
