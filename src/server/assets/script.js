// What pages offer beyond reading: the switch of light and dark, folding, copying, keys, and further steps at the end.
"use strict";

const THEME = "runvault-theme";
const THEMES = ["system", "light", "dark"];

function storedTheme() {
  try {
    return localStorage.getItem(THEME) || "system";
  } catch {
    return "system";
  }
}

function applyTheme(theme) {
  if (theme === "system") {
    delete document.documentElement.dataset.theme;
  } else {
    document.documentElement.dataset.theme = theme;
  }
}

// Before the page is drawn, so that it does not flash.
applyTheme(storedTheme());

function addThemeSwitch() {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "theme";
  let theme = storedTheme();
  const show = () => {
    button.textContent = `Theme: ${theme}`;
  };
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem(THEME, theme);
    } catch {
      // The choice then lasts for this page.
    }
    applyTheme(theme);
    show();
  });
  show();
  document.querySelector("header").append(button);
}

// Copies a text. Where that is not permitted, selects the element that shows it.
async function copy(button, text, element) {
  const name = button.dataset.name ?? (button.dataset.name = button.textContent);
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(element);
    button.textContent = "Selected";
  }
  setTimeout(() => {
    button.textContent = name;
  }, 3000);
}

function makeButton(text, onClick) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.addEventListener("click", onClick);
  return button;
}

// Copies what the page shows, except the marks of characters that are shown as escapes: these stay escapes.
function addCopyButton(element, place, text = () => element.textContent) {
  const button = makeButton("Copy", (event) => {
    event.preventDefault();
    copy(button, text(), element);
  });
  button.className = "copier";
  place(button);
}

function addCopyButtons(root) {
  for (const code of root.querySelectorAll("code.copy")) {
    addCopyButton(code, (button) => code.after(" ", button));
  }
  for (const pre of root.querySelectorAll(".body pre, .message pre:not(.json pre)")) {
    const role = pre.previousElementSibling;
    if (role && role.matches(".role, .language")) {
      addCopyButton(pre, (button) => role.append(" ", button));
    } else if (pre.closest(".markdown")) {
      // The place of the language, if the code does not state one.
      const line = document.createElement("p");
      line.className = "language";
      pre.before(line);
      addCopyButton(pre, (button) => line.append(button));
    } else if (pre.closest(".message")) {
      addCopyButton(pre, (button) => pre.before(button));
    }
  }
  for (const tree of root.querySelectorAll("ul.json")) {
    addCopyButton(tree, (button) => tree.before(button), () => jsonOf(tree));
  }
}

// The JSON of a row of a tree, from what the page shows.
function jsonOf(row) {
  const nested = row.matches(".json") ? row : row.querySelector(":scope > details > ul");
  if (nested) {
    const rows = [...nested.querySelectorAll(":scope > li[data-pointer]")];
    const names = rows.map((one) => one.dataset.pointer.split("/").pop().replaceAll("~1", "/").replaceAll("~0", "~"));
    const isArray = row.dataset.form === "array";
    const parts = rows.map((one, at) => (isArray ? "" : `${JSON.stringify(names[at])}:`) + jsonOf(one));
    return isArray ? `[${parts.join(",")}]` : `{${parts.join(",")}}`;
  }
  const text = row.querySelector(".value").textContent;
  return row.dataset.form === "string" ? JSON.stringify(text) : text;
}

// Two buttons for the row of a tree under the pointer or with the focus: they copy its value, and its place.
function addTreeButtons() {
  let row;
  const value = makeButton("Copy value", () => {
    copy(value, row.dataset.form === "string" ? JSON.parse(jsonOf(row)) : jsonOf(row), row);
  });
  const pointer = makeButton("Copy pointer", () => copy(pointer, row.dataset.pointer, row));
  value.className = pointer.className = "copier";
  const show = (event) => {
    const next = event.target.closest?.(".json li[data-pointer]");
    if (!next || next === row || event.target.closest("button")) {
      return;
    }
    row = next;
    [value.textContent, pointer.textContent] = ["Copy value", "Copy pointer"];
    const summary = row.querySelector(":scope > details > summary");
    const last = summary ?? row.querySelector(":scope > .value");
    last?.after(value, pointer);
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("focusin", (event) => {
    // The rows of a tree are reached with the Tab key once the tree is.
    event.target.closest?.(".json")?.querySelectorAll("li[data-pointer]").forEach((one) => {
      one.tabIndex = 0;
    });
    show(event);
  });
}

const FOLDED = "details.step, .call details:not(.offered)";

function addFolding(tools) {
  for (const [text, open] of [["Open all", true], ["Fold all", false]]) {
    tools.append(makeButton(text, () => {
      for (const step of document.querySelectorAll(FOLDED)) {
        step.open = open;
      }
    }), " ");
  }
}

// Does something after the page was drawn this many times.
function afterFrames(count, action) {
  requestAnimationFrame(() => (count > 1 ? afterFrames(count - 1, action) : action()));
}

// An address that ends in a step opens it, and what it is in.
function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) {
    return;
  }
  for (let within = target; within; within = within.parentElement) {
    if (within.tagName === "DETAILS") {
      within.open = true;
    }
  }
  placing += 1;
  isPlacing = true;
  place(target, placing);
}

// The number of the last place that the page was scrolled to, and whether it still is.
let placing = 0;
let isPlacing = false;

// Scrolls to a target until it stays where it is: calls that come into view are laid out then, and have other heights than
// those that were assumed.
function place(target, turn, still = 0, left = 100) {
  if (turn !== placing) {
    return;
  }
  isPlacing = still < 5 && left > 0;
  if (!isPlacing) {
    return;
  }
  target.scrollIntoView();
  const { top } = target.getBoundingClientRect();
  afterFrames(2, () => {
    const moved = Math.abs(target.getBoundingClientRect().top - top);
    place(target, turn, moved < 1 ? still + 1 : 0, left - 1);
  });
}

// Whoever scrolls in the meantime wants to be elsewhere.
for (const input of ["wheel", "touchmove", "keydown", "mousedown"]) {
  addEventListener(input, () => {
    placing += 1;
    isPlacing = false;
  }, { passive: true });
}

// The places that keys lead to.
const PLACES = {
  any: "details.step > summary, .message, .tool-call, tbody tr a.hash:first-of-type",
  error: "details.step.failed > summary, .message.error, .tool-call.failed",
  tool: "details.step.tool > summary, .tool-call",
};

// Appends the next steps, and returns whether there are more.
let loading;
function loadNext() {
  loading ??= appendNext().finally(() => {
    loading = undefined;
  });
  return loading;
}

// Reads a page of the server; null if it has none at this address.
async function read(address) {
  const response = await fetch(address);
  return response.ok ? new DOMParser().parseFromString(await response.text(), "text/html") : null;
}

async function appendNext() {
  const link = document.querySelector(".steps a[rel=next]");
  if (!link || location.protocol === "file:") {
    return false;
  }
  const page = await read(link.href);
  if (!page) {
    return false;
  }
  const steps = [...page.querySelectorAll(".steps > .numbered, .steps > .calls > *")];
  const more = page.querySelector(".steps a[rel=next]");
  const added = steps.map((step) => document.importNode(step, true));
  const calls = document.querySelector(".steps > .calls");
  if (calls) {
    calls.append(...added);
  } else {
    link.closest("nav").before(...added);
  }
  added.forEach(addCopyButtons);
  if (more) {
    link.href = more.href;
  } else {
    link.remove();
  }
  return true;
}

// Loads further steps before the end of those on the page is reached by scrolling. A link to a place on the page, and what is
// loaded itself, can bring the end into view too, and would load one page after the other.
function addLoading() {
  const link = document.querySelector(".steps a[rel=next]");
  if (!link || location.protocol === "file:") {
    return;
  }
  const watcher = new IntersectionObserver(async (entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) {
      return;
    }
    watcher.unobserve(link);
    if (await loadNext().catch(() => false)) {
      watchAfterScroll();
    }
  }, { rootMargin: "0px 0px 1500px 0px" });
  let turns = 0;
  function watchAfterScroll() {
    watcher.unobserve(link);
    const turn = ++turns;
    function watch() {
      if (!isPlacing) {
        removeEventListener("scroll", watch);
        if (turn === turns) {
          watcher.observe(link);
        }
      }
    }
    // The page is being scrolled to the place then.
    afterFrames(6, () => addEventListener("scroll", watch));
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest("a[href*='#']")) {
      watchAfterScroll();
    }
  });
  addEventListener("hashchange", watchAfterScroll);
  if (location.hash) {
    watchAfterScroll();
  } else {
    watcher.observe(link);
  }
}

// Counts that take long are loaded after the page.
async function loadFacets() {
  const link = document.querySelector(".facets > a.load");
  if (!link || location.protocol === "file:") {
    return;
  }
  const facets = (await read(link.href))?.querySelector("section.facets");
  if (facets) {
    link.parentElement.replaceWith(document.importNode(facets, true));
  }
}

// How often the runs that are being recorded are read again, in milliseconds.
const RECORDINGS_AGE = 5000;

// Reads the runs that are being recorded again while the page is looked at.
function addRefreshing() {
  if (!document.querySelector("section.recordings") || location.protocol === "file:") {
    return;
  }
  setInterval(async () => {
    if (document.hidden) {
      return;
    }
    try {
      const now = (await read("/recordings"))?.querySelector("section.recordings");
      const shown = document.querySelector("section.recordings");
      if (now && now.innerHTML !== shown.innerHTML) {
        shown.replaceWith(document.importNode(now, true));
      }
    } catch {
      // The server may be stopped for a while.
    }
  }, RECORDINGS_AGE);
}

function isShown(element) {
  return element.checkVisibility?.() ?? true;
}

// Goes to the next place of a sort, or to the previous one, after those that the focus or the window has passed.
async function go(sort, direction) {
  const places = [...document.querySelectorAll(PLACES[sort])].filter(isShown);
  const now = document.activeElement?.closest(PLACES.any);
  const isAfter = (place) => now.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING;
  const isBefore = (place) => now.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_PRECEDING;
  let next;
  if (!now) {
    next = places.find((place) => place.getBoundingClientRect().bottom > 0) ?? places.at(-1);
  } else {
    next = direction > 0 ? places.find(isAfter) : places.filter(isBefore).at(-1);
  }
  if (!next) {
    if (direction > 0 && await loadNext().catch(() => false)) {
      await go(sort, direction);
    }
    return;
  }
  // What has no place in the order of the Tab key can have the focus then.
  if (!next.hasAttribute("tabindex") && next.tabIndex < 0) {
    next.tabIndex = -1;
  }
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

const KEYS = [
  ["j", "Next message, step or row", () => go("any", 1)],
  ["k", "Previous message, step or row", () => go("any", -1)],
  ["e", "Next error", () => go("error", 1)],
  ["t", "Next tool call", () => go("tool", 1)],
  ["/", "Search", () => document.getElementById("go")?.focus()],
  ["?", "These keys", showKeys],
];

function showKeys() {
  let dialog = document.querySelector("dialog.keys");
  if (!dialog) {
    dialog = document.createElement("dialog");
    dialog.className = "keys";
    dialog.setAttribute("aria-label", "Keys");
    const list = document.createElement("dl");
    for (const [key, meaning] of KEYS) {
      const [row, name, text] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
      const shown = document.createElement("kbd");
      shown.textContent = key;
      text.textContent = meaning;
      name.append(shown);
      row.append(name, text);
      list.append(row);
    }
    dialog.append(list, makeButton("Close", () => dialog.close()));
    document.body.append(dialog);
  }
  dialog.showModal();
}

function addKeys() {
  document.addEventListener("keydown", (event) => {
    const inField = event.target.closest("input, select, textarea, dialog");
    if (inField || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const known = KEYS.find(([key]) => key === event.key);
    if (known) {
      event.preventDefault();
      known[2]();
    }
  });
}

// Buttons for what keys do, where there are no keys.
function addTools() {
  const tools = document.querySelector(".fold");
  if (!tools || !document.querySelector("details.step, .call")) {
    return;
  }
  for (const [sort, text] of [["error", "Next error"], ["tool", "Next tool call"]]) {
    if (document.querySelector(PLACES[sort])) {
      tools.append(makeButton(text, () => go(sort, 1)), " ");
    }
  }
  addFolding(tools);
  const keys = makeButton("?", showKeys);
  keys.setAttribute("aria-label", "Keys");
  tools.append(keys);
}

// The artifact whose links are drawn is in view, also where the drawing is wider than the window.
function showStart() {
  const start = document.getElementById("start");
  const around = start?.closest(".scroll");
  if (around) {
    const [one, other] = [start.getBoundingClientRect(), around.getBoundingClientRect()];
    around.scrollLeft += one.left - other.left - Math.max(0, (around.clientWidth - one.width) / 2);
  }
}

document.addEventListener("DOMContentLoaded", () => {
  addThemeSwitch();
  addCopyButtons(document);
  addTools();
  addTreeButtons();
  addKeys();
  addLoading();
  addRefreshing();
  loadFacets().catch(() => {});
  showStart();
});
addEventListener("load", openTarget);
addEventListener("hashchange", openTarget);
