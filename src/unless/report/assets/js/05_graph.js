// The picture on the screen, drawn by cytoscape on a canvas; boxes stand where they were put and never move.

const GRAPH_STYLE = [
  {
    selector: "node.box",
    style: {
      shape: "round-rectangle",
      width: "data(width)",
      height: "data(height)",
      label: "data(label)",
      "background-color": "data(fill)",
      color: "data(ink)",
      "border-color": "data(border)",
      "border-width": 1.5,
      "font-size": 14,
      "font-weight": 600,
      "font-family": "system-ui, sans-serif",
      "text-valign": "center",
      "text-wrap": "wrap",
      "text-max-width": 400,
      "overlay-opacity": 0,
      "z-index": 10,
    },
  },
  {
    selector: "node.mark",
    style: {
      shape: "data(shape)",
      width: 13,
      height: 13,
      "background-color": "data(fill)",
      "border-color": "data(colour)",
      "border-width": 2,
      opacity: "data(opacity)",
      "overlay-opacity": 0,
      "z-index": 1,
    },
  },
  {
    selector: "edge.link",
    style: {
      width: "data(width)",
      "line-color": "data(colour)",
      opacity: "data(opacity)",
      "curve-style": "straight",
      "overlay-padding": 8,
      "overlay-opacity": 0,
    },
  },
  {
    selector: 'edge.link[state = "holds in part"]',
    style: { "line-style": "dashed", "line-dash-pattern": [16, 5] },
  },
  {
    selector: 'edge.link[state = "absent"]',
    style: { "line-style": "dashed", "line-dash-pattern": [5, 6] },
  },
  {
    selector: 'edge.link[state = "not settled"]',
    style: { "line-style": "dotted" },
  },
  {
    selector: "edge.chosen",
    style: { "underlay-color": "data(halo)", "underlay-opacity": 0.35, "underlay-padding": 6 },
  },
  {
    selector: "edge.arrow",
    style: {
      width: 2,
      "line-color": "data(colour)",
      "target-arrow-color": "data(colour)",
      "target-arrow-shape": "triangle",
      "arrow-scale": 1.1,
      "line-style": "dotted",
      "curve-style": "straight",
      opacity: "data(opacity)",
      events: "no",
      "overlay-opacity": 0,
    },
  },
];

// The frame has the shape of what it holds.
function shapeFrame(container) {
  const [xs, ys] = [page.variables.map((one) => one.x), page.variables.map((one) => one.y)];
  const [width, height] = [xs, ys].map((all) => Math.max(...all) - Math.min(...all) + 140);
  container.style.aspectRatio = Math.min(3, Math.max(1, width / height));
}

function makeGraph(container, onLink) {
  shapeFrame(container);
  const cy = cytoscape({
    container,
    style: GRAPH_STYLE,
    layout: { name: "preset" },
    autoungrabify: true,
    autounselectify: true,
    boxSelectionEnabled: false,
    userZoomingEnabled: false,
    userPanningEnabled: false,
    maxZoom: 3,
    minZoom: 0.05,
  });
  const open = (event) => onLink(event.target.data("link"));
  cy.on("tap", "edge.link", open);
  cy.on("tap", "node.mark", open);
  cy.on("mouseover", "edge.link, node.mark", () => container.classList.add("over-link"));
  cy.on("mouseout", "edge.link, node.mark", () => container.classList.remove("over-link"));
  new ResizeObserver(() => fitGraph(cy)).observe(container);
  return cy;
}

function fitGraph(cy) {
  cy.resize();
  cy.fit(undefined, 18);
  // A few boxes would otherwise fill the frame.
  cy.zoom(Math.min(cy.zoom(), Math.max(1.5, cy.width() / 600)));
  cy.center();
  cy.userPanningEnabled(false);
}

function zoomGraph(cy, factor) {
  cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
  // Only a picture that is larger than its frame is moved: on a phone a finger should scroll the page.
  cy.userPanningEnabled(true);
}

function elements(drawing) {
  const boxes = drawing.boxes.map((one) => ({
    group: "nodes",
    classes: "box",
    position: { x: one.x, y: one.y },
    data: {
      id: `v${one.place}`,
      label: one.lines.join("\n"),
      width: one.width,
      height: one.height,
      fill: one.fill,
      ink: one.ink,
      border: one.border,
    },
  }));
  const links = drawing.links.map((one) => ({
    group: "edges",
    classes: one.chosen ? "link chosen" : "link",
    data: {
      id: `e${one.link}`,
      link: one.link,
      source: `v${one.from}`,
      target: `v${one.to}`,
      colour: one.colour,
      width: one.width,
      kind: one.kind,
      state: one.state,
      opacity: one.opacity,
      halo: drawing.colours.ink,
    },
  }));
  const marks = drawing.links
    .filter((one) => one.mark)
    .map((one) => ({
      group: "nodes",
      classes: "mark",
      position: middle(one.link),
      data: {
        id: `m${one.link}`,
        link: one.link,
        shape: one.mark,
        colour: one.colour,
        fill: one.fill,
        opacity: one.there ? 1 : 0.8,
      },
    }));
  const arrows = drawing.arrows.map((one) => ({
    group: "edges",
    classes: "arrow",
    data: {
      id: `a${one.link}-${one.from}`,
      source: `v${one.from}`,
      target: `m${one.link}`,
      colour: one.colour,
      opacity: one.opacity,
    },
  }));
  return [...boxes, ...marks, ...links, ...arrows];
}

function isChanged(known, one) {
  return (
    Object.keys(one.data).some((key) => known.data(key) !== one.data[key]) ||
    known.classes().join(" ") !== one.classes
  );
}

// Elements that stay are changed in place, so that a choice costs no new picture.
function showGraph(cy, drawing) {
  const wanted = elements(drawing);
  const ids = new Set(wanted.map((one) => one.data.id));
  const isFirst = cy.elements().empty();
  cy.batch(() => {
    cy.elements()
      .filter((one) => !ids.has(one.id()))
      .remove();
    for (const one of wanted) {
      const known = cy.getElementById(one.data.id);
      if (known.empty()) cy.add(one);
      else if (isChanged(known, one)) known.data(one.data).classes(one.classes);
    }
  });
  if (isFirst) fitGraph(cy);
}
