// What can be taken away: the picture as SVG and PNG, the statements as CSV and JSON.

function save(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const anchor = el("a", { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

const DASHES = { holds: null, "holds in part": "16 5", absent: "5 6", "not settled": "2 4" };

function svgLink(one) {
  const [a, b] = [page.variables[one.from], page.variables[one.to]];
  return svgEl("line", {
    x1: a.x,
    y1: a.y,
    x2: b.x,
    y2: b.y,
    stroke: one.colour,
    "stroke-width": one.width,
    "stroke-dasharray": DASHES[one.state],
    "stroke-opacity": one.opacity,
  });
}

function svgArrow(one) {
  const [from, to] = [page.variables[one.from], middle(one.link)];
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const tip = { x: to.x - 8 * dx, y: to.y - 8 * dy };
  const wing = (side) => `${tip.x - 8 * dx - side * 4 * dy},${tip.y - 8 * dy + side * 4 * dx}`;
  return svgEl(
    "g",
    { opacity: one.opacity },
    svgEl("line", {
      x1: from.x,
      y1: from.y,
      x2: tip.x,
      y2: tip.y,
      stroke: one.colour,
      "stroke-width": 1.5,
      "stroke-dasharray": "2 4",
    }),
    svgEl("polygon", { points: `${tip.x},${tip.y} ${wing(1)} ${wing(-1)}`, fill: one.colour }),
  );
}

function svgMark(one) {
  const { x, y } = middle(one.link);
  const style = { fill: one.fill, stroke: one.colour, "stroke-width": 2 };
  if (one.mark === "ellipse") return svgEl("circle", { cx: x, cy: y, r: 6, ...style });
  if (one.mark === "rectangle") return svgEl("rect", { x: x - 6, y: y - 6, width: 12, height: 12, ...style });
  return svgEl("polygon", { points: `${x},${y - 7} ${x + 7},${y} ${x},${y + 7} ${x - 7},${y}`, ...style });
}

function svgBox(one) {
  const lines = one.lines.map((line, place) =>
    svgEl(
      "text",
      {
        x: one.x,
        y: one.y + 5 + 16 * (place - (one.lines.length - 1) / 2),
        fill: one.ink,
        "text-anchor": "middle",
        "font-family": "system-ui, sans-serif",
        "font-size": 14,
        "font-weight": 600,
      },
      line,
    ),
  );
  return svgEl(
    "g",
    {},
    svgEl("rect", {
      x: one.x - one.width / 2,
      y: one.y - one.height / 2,
      width: one.width,
      height: one.height,
      rx: 8,
      fill: one.fill,
      stroke: one.border,
      "stroke-width": 1.5,
    }),
    lines,
  );
}

function svgPicture(drawing, title) {
  const left = Math.min(...drawing.boxes.map((one) => one.x - one.width / 2)) - 20;
  const right = Math.max(...drawing.boxes.map((one) => one.x + one.width / 2)) + 20;
  const top = Math.min(...drawing.boxes.map((one) => one.y)) - 50;
  const bottom = Math.max(...drawing.boxes.map((one) => one.y)) + 50;
  const size = { x: left, y: top, width: right - left, height: bottom - top };
  return svgEl(
    "svg",
    {
      viewBox: `${left} ${top} ${size.width} ${size.height}`,
      width: size.width,
      height: size.height,
      role: "img",
    },
    svgEl("title", {}, title),
    svgEl("rect", { ...size, fill: drawing.colours.paper }),
    drawing.arrows.map(svgArrow),
    drawing.links.map(svgLink),
    drawing.links.filter((one) => one.mark).map(svgMark),
    drawing.boxes.map(svgBox),
  );
}

function saveSvg(drawing, title) {
  save("graph.svg", "image/svg+xml", new XMLSerializer().serializeToString(svgPicture(drawing, title)));
}

function savePng(cy, background) {
  const base64 = cy.png({ full: true, scale: 2, bg: background, output: "base64" });
  save("graph.png", "image/png", bytesOf(base64));
}

const CSV_COLUMNS = [
  "a",
  "b",
  "kind",
  "is_finding",
  "confidence",
  "where",
  "context",
  "given",
  "rows",
  "statistic",
  "df",
  "p",
  "q",
  "information",
  "cramers_v",
  "cramers_v_limit",
  "more_rows",
  "support",
  "sentence",
];

// A spreadsheet runs what begins with these, spaces before them or not; an apostrophe makes it text.
function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  const guarded = /^[\t\r\n]|^\s*[=+\-@＝＋－＠]/.test(value) ? `'${value}` : value;
  return /[",\r\n']/.test(guarded) ? `"${guarded.replaceAll('"', '""')}"` : guarded;
}

// One row for each test; one for what is determined, which needs none.
function csvRows(place) {
  const one = page.statements[place];
  const sides = one.evidence.length ? one.evidence : [{ n_rows: one.n_rows }];
  return sides.map((side, at) => [
    one.pair[0],
    one.pair[1],
    one.kind,
    String(one.is_finding),
    one.confidence,
    one.gate ? ["linked", "elsewhere"][at] : "everywhere",
    page.where[place][at],
    one.given.join("; "),
    side.n_rows,
    side.statistic,
    side.df,
    side.p,
    side.q,
    side.information,
    side.cramers_v,
    side.cramers_v_limit,
    side.more_rows,
    one.support,
    one.sentence,
  ]);
}

function csvText(places) {
  const lines = [CSV_COLUMNS, ...places.flatMap(csvRows)].map((cells) => cells.map(csvCell).join(","));
  return `\ufeff${lines.join("\r\n")}\r\n`;
}

function jsonText(places) {
  const statements = places.map((place) => page.statements[place]);
  return JSON.stringify({ settings: page.settings, note: page.statement_note, statements }, null, 2);
}
