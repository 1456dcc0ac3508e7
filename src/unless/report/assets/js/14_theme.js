// Light, dark, or as the system says; the choice lasts as long as the page is open.

const systemDark = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : systemDark.matches;
}

function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  showTheme();
}

function showTheme() {
  forgetPalette();
  byId("theme").textContent = isDark() ? "Light colours" : "Dark colours";
  redraw();
}

// Paper is white: pictures are drawn in light colours, and what is folded is unfolded.
function beforePrint() {
  state.theme = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  forgetPalette();
  const findings = [...document.querySelectorAll("#found > ol > li > details")];
  state.unfolded = findings.filter((details) => !details.open);
  for (const details of findings) {
    details.open = true;
    // The browser tells of a fold later, perhaps only when the pages are already laid out.
    fillFinding(details);
  }
  redraw();
  if (!graphs.main) return;
  const title = `Findings: ${contextText(state.context)}`;
  refill(byId("print-graph"), svgPicture(scene(look(state.context)), title));
}

function afterPrint() {
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
  for (const details of state.unfolded) details.open = false;
  if (graphs.main) refill(byId("print-graph"));
  forgetPalette();
  redraw();
}

function makeTheme() {
  byId("theme").addEventListener("click", toggleTheme);
  systemDark.addEventListener("change", showTheme);
  window.addEventListener("beforeprint", beforePrint);
  window.addEventListener("afterprint", afterPrint);
  byId("print").addEventListener("click", () => window.print());
}
