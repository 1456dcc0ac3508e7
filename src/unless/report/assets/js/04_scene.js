// What the picture shows, in plain numbers and colours: the screen and the files are drawn from this.

const BOX_HEIGHT = 34;
// More gated links than this, and only the arrows of the chosen one are drawn; the legend knows the number too.
const MOST_ARROWS = 14;

const COLOURS = [
  "paper",
  "ink",
  "quiet",
  "line",
  "linked",
  "gated",
  "differs",
  "partly",
  "determined",
  "fixed",
  "fixed-ink",
  "box",
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

function statementOf(link) {
  return page.statements[page.links[link].statement];
}

// Of what is determined there is no test; its line has a width of its own.
function strength(link) {
  const { evidence } = statementOf(link);
  return evidence.length ? evidence[0].cramers_v || 0 : 0.3;
}

// The mark in the middle of a line tells the kind without its colour.
const MARKS = { gated: "diamond", differs: "ellipse", partly: "diamond", determined: "rectangle" };

// Fixed columns have no links. Where no row is, nothing is said of any.
function drawnLinks(answer, colours) {
  const links = page.links.map((_, link) => link).filter((link) => linkState(answer, link) !== "fixed");
  return links.map((link) => {
    const { kind } = statementOf(link);
    const says = answer.nRows ? linkState(answer, link) : "not settled";
    const there = says === "holds" || says === "holds in part";
    const colour = there ? colours[kind] : colours.line;
    return {
      link,
      from: page.links[link].a,
      to: page.links[link].b,
      kind,
      state: says,
      there,
      colour,
      width: there ? 1.5 + 7 * Math.min(1, strength(link)) : 2,
      opacity: there ? 0.95 : 0.7,
      mark: MARKS[kind] || null,
      fill: kind === "partly" ? colours.paper : colour,
      chosen: state.link === link,
    };
  });
}

function drawnArrows(links, colours) {
  const gated = links.filter((one) => isGated(one.link));
  const shown = gated.length <= MOST_ARROWS ? gated : gated.filter((one) => one.chosen);
  return shown.flatMap((one) =>
    page.links[one.link].switches.map((from) => ({
      link: one.link,
      from,
      colour: one.there ? one.colour : colours.line,
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

function scene(answer) {
  const links = drawnLinks(answer, palette());
  const arrows = drawnArrows(links, palette());
  return { colours: palette(), links, arrows, boxes: drawnBoxes(answer, palette()) };
}
