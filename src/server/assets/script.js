// What pages offer beyond reading: the switch of light and dark, folding of all steps, copying, and keys.
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

// Copies what the page shows, except the marks of characters that are shown as escapes: these stay escapes.
function addCopyButton(element, place) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copier";
  button.textContent = "Copy";
  button.addEventListener("click", async (event) => {
    event.preventDefault();
    try {
      await navigator.clipboard.writeText(element.textContent);
      button.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(element);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      button.textContent = "Selected";
    }
  });
  place(button);
}

function addFolding() {
  const steps = document.querySelectorAll("details.step");
  const tools = document.querySelector(".fold");
  if (!tools || steps.length === 0) {
    return;
  }
  for (const [text, open] of [["Open all", true], ["Fold all", false]]) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = text;
    button.addEventListener("click", () => {
      for (const step of steps) {
        step.open = open;
      }
    });
    tools.append(button, " ");
  }
}

// An address that ends in a step opens it.
function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (target && target.tagName === "DETAILS") {
    target.open = true;
    target.scrollIntoView();
  }
}

// "/" searches, "j" and "k" go to the next and the previous step or row.
function addKeys() {
  document.addEventListener("keydown", (event) => {
    const inField = event.target.closest("input, select, textarea");
    if (inField || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      document.getElementById("go")?.focus();
      return;
    }
    const direction = { j: 1, k: -1 }[event.key];
    if (!direction) {
      return;
    }
    const places = [...document.querySelectorAll("details.step > summary, tbody tr a.hash:first-of-type")];
    const at = places.indexOf(document.activeElement);
    places[Math.min(Math.max(at + direction, 0), places.length - 1)]?.focus();
  });
}

document.addEventListener("DOMContentLoaded", () => {
  addThemeSwitch();
  for (const code of document.querySelectorAll("code.copy")) {
    addCopyButton(code, (button) => code.after(" ", button));
  }
  for (const pre of document.querySelectorAll(".body pre")) {
    const role = pre.previousElementSibling;
    if (role && role.classList.contains("role")) {
      addCopyButton(pre, (button) => role.append(button));
    }
  }
  addFolding();
  addKeys();
  openTarget();
});
addEventListener("hashchange", openTarget);
