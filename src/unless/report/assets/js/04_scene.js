// What the picture shows, in plain numbers and colours: the screen and the files are drawn from this.

const BOX_HEIGHT = 34;
// More gated links than this, and only the arrows of the chosen one are drawn; the legend knows the number too.
const MOST_ARROWS = 14;

const COLOURS = [
  "paper",
  "ink",
  "quiet",
  "line",
  "always",
  "gated",
  "unsure",
  "fixed",
  "fixed-ink",
  "box",
  "only-a",
  "only-b",
];
let colours = null;

// Read once for each theme: asking the browser makes it lay the page out anew.
function palette() {
  if (!colours) {
    const style = getComputedStyle(document.documentElement);
    colours = Object.fromEntries(COLOURS.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return colours;
}

function forgetPalette() {
  colours = null;
}

function isGated(link) {
  return page.links[link].switches.length > 0;
}

function strength(link) {
  const side = page.statements[page.links[link].statement].linked;
  return side ? side.cramers_v : 0;
}

function verdict(link) {
  return page.links[link].drawn ? "dependent" : "unsure";
}

// Compared pictures colour a link by who has it; single ones by whether something switches it.
function linkColour(link, colours, compared) {
  if (compared) return colours[compared(link)];
  if (verdict(link) !== "dependent") return colours.unsure;
  return isGated(link) ? colours.gated : colours.always;
}

// A difference is seen however weak the link is.
function lineWidth(link, compared) {
  const width = 1.5 + 7 * Math.min(1, strength(link));
  return compared && compared(link) !== "unsure" ? Math.max(width, 4) : width;
}

function drawnLinks(answer, colours, compared) {
  return considered().map((link) => {
    const there = holds(answer, link);
    return {
      link,
      from: page.links[link].a,
      to: page.links[link].b,
      colour: there ? linkColour(link, colours, compared) : colours.line,
      width: there ? lineWidth(link, compared) : 1.5,
      dash: there ? (compared && compared(link) === "only-b" ? "dotted" : "solid") : "dashed",
      opacity: there ? (compared ? 0.9 : 0.45 + 0.55 * answer.shares[link] ** 0.5) : 0.55,
      there,
      chosen: state.link === link,
    };
  });
}

function drawnArrows(links, colours, compared) {
  if (compared) return [];
  const gated = links.filter((one) => isGated(one.link));
  const shown = gated.length <= MOST_ARROWS ? gated : gated.filter((one) => one.chosen);
  return shown.flatMap((one) =>
    page.links[one.link].switches.map((from) => ({
      link: one.link,
      from,
      colour: one.there ? colours.gated : colours.line,
      opacity: one.there ? 0.9 : 0.6,
    })),
  );
}

function middle(link) {
  const [a, b] = [page.variables[page.links[link].a], page.variables[page.links[link].b]];
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}

function drawnBoxes(answer, colours) {
  return page.variables.map((variable, place) => {
    const code = answer.context[place];
    const lines = [short(variable.name, 18)];
    if (code >= 0) lines.push(`= ${short(variable.levels[code], 16)}`);
    return {
      place,
      x: variable.x,
      y: variable.y,
      width: Math.max(variable.width, 8.4 * [...lines[lines.length - 1]].length + 20),
      height: code >= 0 ? BOX_HEIGHT + 14 : BOX_HEIGHT,
      lines,
      fill: code >= 0 ? colours.fixed : colours.box,
      ink: code >= 0 ? colours["fixed-ink"] : colours.ink,
      border: code >= 0 ? colours.fixed : colours.quiet,
    };
  });
}

function scene(answer, compared = null) {
  const links = drawnLinks(answer, palette(), compared);
  const arrows = drawnArrows(links, palette(), compared);
  return { colours: palette(), links, arrows, boxes: drawnBoxes(answer, palette()) };
}
