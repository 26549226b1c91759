// The reader's colours: what every page's figures are drawn in.
(() => {
  "use strict";
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const dark = () => css("color-scheme") === "dark" || getComputedStyle(document.documentElement).colorScheme === "dark";

  /** A copy of a chart with the page's variables (`--muted`) replaced by their values in the theme. */
  function recoloured(thing) {
    if (Array.isArray(thing)) return thing.map(recoloured);
    if (thing && typeof thing === "object") return Object.fromEntries(Object.entries(thing).map(([k, v]) => [k, recoloured(v)]));
    return typeof thing === "string" && thing.startsWith("--") ? css(thing) : thing;
  }

  function config() {
    const ink = css("--ink"), muted = css("--muted"), hair = css("--hair"), font = css("--sans");
    return {
      background: "transparent", font,
      view: { stroke: null },
      axis: { labelColor: muted, titleColor: muted, titleFontWeight: 400, titleFontSize: 12, labelFontSize: 11.5, gridColor: hair, domainColor: muted, tickColor: hair, titlePadding: 8, labelOverlap: true },
      axisY: { domain: false, ticks: false },
      header: { labelColor: ink, labelFont: css("--mono"), labelFontSize: 12, labelFontWeight: 600 },
      rule: { color: muted }, tick: { color: ink }, text: { color: ink, fontSize: 12 }, line: { color: css("--accent") }, point: { color: ink },
    };
  }

  window.colours = { css, dark, recoloured, config };
})();
