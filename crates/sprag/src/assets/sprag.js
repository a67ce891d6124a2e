// What pages do beyond links and forms. Everything works without it, only less comfortably.
(() => {
  "use strict";
  const root = document.documentElement;

  // ---- colours ----
  const THEMES = ["auto", "light", "dark"];
  const theme = () => root.dataset.theme || "auto";
  const nameTheme = () =>
    document.querySelectorAll("[data-theme-switch] span").forEach((word) => (word.textContent = `Theme: ${theme()}`));
  const switchTheme = () => {
    const next = THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length];
    if (next === "auto") {
      delete root.dataset.theme;
      localStorage.removeItem("sprag-theme");
    } else {
      root.dataset.theme = next;
      localStorage.setItem("sprag-theme", next);
    }
    nameTheme();
    redraw();
  };

  // ---- charts ----
  const drawn = new Map();
  const colour = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const UNITS = {
    usd: (value) => (value === 0 ? "$0" : value >= 100 ? `$${value.toFixed(0)}` : value >= 0.1 ? `$${value.toFixed(2)}` : `$${+value.toPrecision(2)}`),
    count: (value) => (value >= 1e6 ? `${+(value / 1e6).toPrecision(3)}M` : value >= 1e3 ? `${+(value / 1e3).toPrecision(3)}k` : `${+value.toPrecision(4)}`),
  };
  const draw = (box) => {
    const plan = box.dataset.chart;
    const padding = getComputedStyle(box);
    const width = Math.floor(box.clientWidth - parseFloat(padding.paddingLeft) - parseFloat(padding.paddingRight));
    if (!plan || width <= 0 || !window.uPlot) return;
    const before = drawn.get(box);
    if (before && before.plan === plan && before.width === width && before.theme === themeNow()) return;
    before?.plot.destroy();
    const chart = JSON.parse(plan);
    const show = UNITS[chart.unit] || UNITS.count;
    // Nobody makes half a request.
    const whole = chart.unit === "count" ? { incrs: [0, 1, 2, 3, 4, 5, 6, 7, 8].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power)) } : {};
    const wide = (_, values) => (values ? Math.max(34, 12 + 6.5 * Math.max(...values.map((text) => text.length))) : 34);
    const axis = { stroke: colour("soft"), grid: { stroke: colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const bars = chart.kind === "bars" ? uPlot.paths.bars({ size: [0.7, 24] }) : uPlot.paths.linear();
    const series = chart.series.map((one) => ({
      label: one.label, stroke: colour(one.tone), width: chart.kind === "bars" ? 0 : 2, points: { show: false }, paths: bars,
      fill: chart.kind === "bars" ? colour(one.tone) : colour(`${one.tone}-back`), value: (_, value) => (value == null ? "–" : show(value)),
    }));
    const stamp = (at) => new Date(at * 1000).toISOString().slice(5, 16).replace("T", " ");
    const tick = (at, step) => (step >= 86400 || at % 86400 === 0 ? stamp(at).slice(0, 5) : stamp(at).slice(6));
    // A bar stands in the middle of its time, so the first and the last one need room.
    const room = chart.kind === "bars" && chart.x.length > 1 ? (chart.x[1] - chart.x[0]) / 2 : 0;
    const plot = new uPlot({
      width, height: Number(box.dataset.height) || 180, tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"),
      cursor: { y: false }, legend: { live: true }, padding: [6, 10, 0, 0],
      // Without a pointer over the chart there is nothing to read off.
      hooks: { setLegend: [(u) => box.classList.toggle("idle", u.legend.idx == null)], ready: [() => box.classList.add("idle")] },
      scales: { x: { time: true, range: (_, low, high) => [low - room, high + room] }, y: { range: (_, low, high) => [0, high > 0 ? (chart.unit === "count" ? Math.max(high * 1.08, 2) : high * 1.08) : 1] } },
      axes: [{ ...axis, size: 28, values: (_, ticks, __, ___, step) => ticks.map((at) => tick(at, step)) }, { ...axis, ...whole, size: wide, space: 36, values: (_, values) => values.map(show) }],
      series: [{ label: "Time", value: (_, at) => (at == null ? "–" : `${stamp(at)} UTC`) }, ...series],
    }, [chart.x, ...chart.series.map((one) => one.values)], box);
    drawn.set(box, { plot, plan, width, theme: themeNow() });
  };
  const themeNow = () => `${theme()}${matchMedia("(prefers-color-scheme: dark)").matches}`;
  // Who has no mouse scrolls with the arrow keys, which needs a place for the focus.
  const openScrolls = () => {
    for (const box of document.querySelectorAll(".scroll, pre")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  const redraw = () => {
    openScrolls();
    for (const [box, { plot }] of drawn) if (!box.isConnected) { plot.destroy(); drawn.delete(box); }
    document.querySelectorAll("[data-chart]").forEach(draw);
  };

  // ---- asking before what cannot be undone ----
  let allowed = null;
  document.addEventListener("submit", (event) => {
    const words = event.submitter?.dataset.confirm || event.target.dataset.confirm;
    const dialog = document.getElementById("confirm");
    if (!words || !dialog || allowed === event.target) { allowed = null; return; }
    event.preventDefault();
    event.stopImmediatePropagation();
    const { target: form, submitter } = event;
    document.getElementById("confirm-text").textContent = words;
    dialog.querySelector("[value=yes]").textContent = submitter?.textContent.trim() || "Go on";
    dialog.returnValue = "";
    dialog.onclose = () => {
      if (dialog.returnValue !== "yes") return catchUp();
      allowed = form;
      form.requestSubmit(submitter);
    };
    dialog.showModal();
  }, true);

  // ---- clicks ----
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.matches("#confirm button")) return button.closest("dialog").close(button.value);
    if (button.matches("[data-theme-switch]")) return switchTheme();
    if (button.matches(".menu-button")) {
      const open = document.body.classList.toggle("menu-open");
      button.setAttribute("aria-expanded", open);
    }
    if (button.dataset.copy) {
      await navigator.clipboard.writeText(document.querySelector(button.dataset.copy).textContent);
      button.classList.add("done");
      setTimeout(() => button.classList.remove("done"), 1500);
    }
  });
  // Ticks outlive the news that redraw the rows around them.
  const ticked = new Set();
  const boxes = () => [...document.querySelectorAll("input[data-keep-tick]")];
  const countTicks = () => document.querySelectorAll("[data-ticks]").forEach((note) => (note.textContent = `${ticked.size} ticked`));
  const retick = () => {
    const here = boxes();
    const values = new Set(here.map((box) => box.value));
    for (const value of ticked) if (!values.has(value)) ticked.delete(value);
    here.forEach((box) => (box.checked = ticked.has(box.value)));
    document.querySelectorAll("[data-tick-all]").forEach((all) => (all.checked = here.length > 0 && ticked.size === here.length));
    countTicks();
  };
  document.addEventListener("change", (event) => {
    const all = event.target.closest("[data-tick-all]");
    if (all) document.querySelectorAll(`input[name="${all.dataset.tickAll}"]`).forEach((box) => (box.checked = all.checked));
    boxes().forEach((box) => (box.checked ? ticked.add(box.value) : ticked.delete(box.value)));
    countTicks();
    if (event.target.closest("[data-submit-on-change]")) event.target.form.requestSubmit();
  });

  // ---- keys: / for the filter, g and a letter for a page ----
  let went = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
    if (event.key === "/") {
      const field = document.querySelector(".filter input, .filter select");
      if (field) { event.preventDefault(); field.focus(); }
    } else if (event.key === "g") {
      went = Date.now();
    } else if (Date.now() - went < 1000) {
      went = 0;
      const entry = [...document.querySelectorAll(".side nav a")].find((a) => a.textContent.trim().toLowerCase().startsWith(event.key));
      if (entry) location.href = entry.href;
    }
  });

  // ---- whether the page is live, and as new as it says ----
  const live = (is) => document.getElementById("live-dot")?.classList.toggle("on", is);
  // News that nobody heard while there was no stream, or that had to wait: they are asked for as soon as they can be shown.
  let missed = document.hidden;
  const catchUp = () => {
    if (!missed) return;
    missed = false;
    htmx.trigger(document.body, "changed");
  };
  document.addEventListener("visibilitychange", () => { missed ||= document.hidden; });
  document.addEventListener("htmx:sse:after:connection", () => {
    if (document.hidden) return;
    live(true);
    catchUp();
  });
  document.addEventListener("htmx:sse:error", (event) => {
    live(false);
    missed = true;
    // The session is over; the page leads to the login.
    if (event.detail.status === 401) location.reload();
  });
  // A browser has few connections to a host: pages that nobody looks at must not hold one.
  document.addEventListener("htmx:sse:before:connection", (event) => {
    if (document.hidden) event.detail.connection.cancelled = true;
  });
  // What somebody is asked about must not change under the question.
  document.addEventListener("htmx:before:request", (event) => {
    if (!document.getElementById("confirm")?.open) return;
    event.preventDefault();
    missed = true;
  });
  document.addEventListener("htmx:sse:close", () => live(false));
  document.addEventListener("htmx:after:swap", () => { redraw(); retick(); });
  addEventListener("resize", redraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  addEventListener("pageshow", () => document.body.classList.remove("menu-open"));
  nameTheme();
  redraw();
})();
