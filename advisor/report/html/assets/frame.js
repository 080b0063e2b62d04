// The frame: one page at a time, chosen by the address; light, dark or as the system is; drawing only what is seen.
"use strict";
const report = {
  data: JSON.parse(document.getElementById("report-data").textContent),
  drawers: new Map(), // page -> functions that draw what is on it, each called once when the page is first seen

  whenShown(page, draw) {
    this.drawers.set(page, [...(this.drawers.get(page) || []), draw]);
  },

  drawPage(page) {
    const waiting = this.drawers.get(page) || [];
    this.drawers.delete(page);
    for (const draw of waiting) draw();
  },

  color(name) {
    return `var(--${name})`;
  },

  time(ns) {
    for (const [size, unit] of [[1e9, "s"], [1e6, "ms"], [1e3, "us"]]) {
      if (Math.abs(ns) >= size) return `${Number((ns / size).toPrecision(3))} ${unit}`;
    }
    return `${Math.round(ns)} ns`;
  },
};

(() => {
  const pages = [...document.querySelectorAll("section.page")];
  const links = [...document.querySelectorAll(".pages a")];

  function show(id, isAsked) {
    const target = document.getElementById(id);
    const page = pages.find((one) => one.dataset.page === id) || (target && target.closest("section.page")) || pages[0];
    for (const one of pages) one.hidden = one !== page;
    for (const link of links) {
      if (link.hash === `#${page.dataset.page}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    revealLink();
    report.drawPage(page.dataset.page);
    if (!isAsked) return;
    const inside = target && page.contains(target) && target !== page ? target : null;
    if (inside) {
      inside.scrollIntoView();
    } else {
      window.scrollTo(0, 0);
      page.querySelector("h1").focus({ preventScroll: true });
    }
  }

  // on a phone the tabs scroll: the active one is moved into view, the page itself is not
  function revealLink() {
    const link = document.querySelector(".pages a[aria-current]");
    const list = link && link.closest("ul");
    if (list) list.scrollLeft = link.offsetLeft - list.offsetLeft - (list.clientWidth - link.offsetWidth) / 2;
  }

  window.addEventListener("resize", revealLink);
  window.addEventListener("hashchange", () => show(location.hash.slice(1), true));
  window.addEventListener("beforeprint", () => {
    const shown = pages.filter((page) => !page.hidden);
    for (const page of pages) page.hidden = false; // charts need the width they are drawn in
    for (const page of pages) report.drawPage(page.dataset.page);
    for (const page of pages) page.hidden = !shown.includes(page);
    for (const part of document.querySelectorAll("main details:not([open])")) {
      part.open = true;
      part.dataset.wasClosed = "";
    }
  });
  window.addEventListener("afterprint", () => {
    for (const part of document.querySelectorAll("details[data-was-closed]")) {
      part.open = false;
      delete part.dataset.wasClosed;
    }
  });
  // after the other scripts have said what they draw
  document.addEventListener("DOMContentLoaded", () => show(location.hash.slice(1), location.hash.length > 1));

  const button = document.getElementById("theme");
  const themes = ["system", "light", "dark"];
  function remembered() {
    try { return localStorage.getItem("tfdata-advisor-theme"); } catch { return null; }
  }
  function setTheme(theme) {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    try { localStorage.setItem("tfdata-advisor-theme", theme); } catch { /* a browser that keeps nothing for files */ }
  }
  let theme = themes.includes(remembered()) ? remembered() : document.documentElement.dataset.theme || "system";
  setTheme(theme);
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    setTheme(theme);
  });
})();
