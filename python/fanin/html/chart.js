// Draws the page's only chart, from its JSON block.
(async () => {
  "use strict";
  const place = document.getElementById("chart");
  const spec = JSON.parse(document.getElementById("data").textContent);
  try {
    // `ast`: expressions are interpreted, not compiled, so the page's policy can forbid evaluation.
    await vegaEmbed(place, spec, { mode: "vega-lite", ast: true, renderer: "svg", actions: { export: true, source: false, compiled: false, editor: false } });
    place.dataset.drawn = "yes";
  } catch (error) {
    place.textContent = `The chart could not be drawn (${error}).`;
  }
})();
