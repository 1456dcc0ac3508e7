// Elements are made here and nowhere else: text goes in as text nodes, so that no name can become markup.

function el(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svgEl(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(key, value === true ? "" : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function byId(id) {
  return document.getElementById(id);
}

function refill(container, ...children) {
  container.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

// What would not be seen, or would turn its surroundings, is spelt as in the sentences that came with the page;
// joiners hold many scripts together.
const UNSEEN = /(?![ \u200c\u200d])[\p{C}\p{Z}]/gu;
const SPELT = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

function spelt(one) {
  const code = one.codePointAt(0);
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return SPELT[one] || `\\${letter}${code.toString(16).padStart(digits, "0")}`;
}

function seen(text) {
  return text.replace(UNSEEN, spelt) || "''";
}

function short(text, most) {
  const letters = [...seen(text)];
  return letters.length <= most ? letters.join("") : letters.slice(0, most - 1).join("") + "…";
}

// A name of the table: its direction stays its own, and a very long one is cut, with the whole as its title.
function nameEl(text, most = 60) {
  const cut = short(text, most);
  return el("bdi", { title: cut === seen(text) ? null : seen(text) }, cut);
}

function pairText(link) {
  const [a, b] = [page.variables[link.a].name, page.variables[link.b].name].sort(byCodeUnits);
  return `${seen(a)} – ${seen(b)}`;
}

function byCodeUnits(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

function count(number, noun) {
  return `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;
}

const THOUSANDS = new Intl.NumberFormat("en-US");

// A count that is too small to be told is null.
function whole(number) {
  if (number === null) return `<${page.min_cell}`;
  return THOUSANDS.format(number);
}

function percent(share) {
  if (share === 0 || share === 1) return share ? "100 %" : "0 %";
  if (share < 0.01) return "<1 %";
  return share > 0.99 ? ">99 %" : `${Math.round(100 * share)} %`;
}

function decimal(value) {
  return value >= 0.995 ? "1" : value.toFixed(2).replace(/^0/, "");
}

function chance(value) {
  if (value < 1e-300) return "< 1e-300";
  return value >= 0.001
    ? String(Number(value.toPrecision(2))).replace(/^0/, "")
    : value.toExponential(0).replace("e-0", "e-");
}

function chanceText(name, value) {
  const text = chance(value);
  return text.startsWith("<") ? `${name} ${text}` : `${name} = ${text}`;
}
