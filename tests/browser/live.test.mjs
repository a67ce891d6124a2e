// Pages that follow what happens: they stand still while somebody is asked, cost nothing while nobody looks, and catch up.

import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { flow } from "./stage.mjs";

/** Counts how often a page is told that there is something new; gives a function that waits until it is told once more. */
async function news(page) {
  const heard = new EventEmitter();
  let count = 0;
  await page.exposeFunction("heardNews", () => heard.emit("news", (count += 1)));
  await page.evaluate(() => document.body.addEventListener("changed", () => window.heardNews()));
  return async (act) => {
    const before = count;
    await act();
    const signal = AbortSignal.timeout(10_000);
    while (count === before) await once(heard, "news", { signal });
  };
}

/** The `/live` streams of a page: how many it has begun, how many are open, and a way to wait for either. */
function streams(page) {
  const open = new Set();
  const changes = new EventEmitter();
  const live = { begun: 0, open: () => open.size, until };
  const note = (change) => (request) => {
    if (new URL(request.url()).pathname !== "/live") return;
    change(request);
    changes.emit("change");
  };
  page.on("request", note((request) => { live.begun += 1; open.add(request); }));
  page.on("requestfinished", note((request) => open.delete(request)));
  page.on("requestfailed", note((request) => open.delete(request)));
  async function until(holds) {
    const signal = AbortSignal.timeout(10_000);
    while (!holds(live)) await once(changes, "change", { signal });
  }
  return live;
}

/** A headless browser shows all its tabs: what they are told of being hidden is said here, everything else is real. */
const hide = (isHidden) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => isHidden });
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => (isHidden ? "hidden" : "visible") });
  document.dispatchEvent(new Event("visibilitychange"));
};

flow("a page stands still while it asks, and catches up when the question is answered", async (stage) => {
  await stage.call("task", { agent: "worker" });
  const page = await stage.open("/agents");
  await page.locator(".live-dot.on").waitFor();
  const told = await news(page);
  await page.locator("tr", { hasText: "worker" }).getByRole("button", { name: "Deactivate" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Deactivate worker?").waitFor();
  await dialog.getByRole("button", { name: "Deactivate" }).focus();
  const before = await page.locator("#live").innerHTML();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));

  for (const agent of ["newcomer", "another"]) await told(() => stage.call("task", { agent }));
  assert.equal(await page.locator("#live").innerHTML(), before, "nothing moved under the question");
  assert.deepEqual(asked, [], "nothing was asked for");
  assert.equal(await dialog.isVisible(), true);
  assert.match(await dialog.innerText(), /Deactivate worker\?/);
  assert.equal(await page.evaluate(() => document.activeElement.value), "yes", "the focus stayed where it was");

  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.locator("tr", { hasText: "newcomer" }).waitFor();
  await page.locator("tr", { hasText: "another" }).waitFor();

  await page.locator("tr", { hasText: "worker" }).getByRole("button", { name: "Deactivate" }).click();
  await told(() => stage.call("task", { agent: "late" }));
  await dialog.getByRole("button", { name: "Deactivate" }).click();
  await page.locator("tr", { hasText: "worker" }).locator(".pill", { hasText: "Inactive" }).waitFor();
  assert.equal(await page.locator(".pill", { hasText: "Inactive" }).count(), 1, "only the one that was asked about");
});

flow("a hidden page holds no stream, and is fresh when it is shown again", async (stage) => {
  const page = await stage.open("/runs");
  const live = streams(page);
  await page.reload();
  await page.locator(".live-dot.on").waitFor();
  await live.until(({ open }) => open() === 1);

  await page.evaluate(hide, true);
  await live.until(({ open }) => open() === 0);
  await stage.call("while-hidden");
  assert.equal(await page.locator("tr", { hasText: "while-hidden" }).count(), 0, "nobody told it");

  await page.evaluate(hide, false);
  await page.locator("tr", { hasText: "while-hidden" }).waitFor();
  await live.until(({ open }) => open() === 1);
  await stage.call("when-shown");
  await page.locator("tr", { hasText: "when-shown" }).waitFor();
});

flow("a page that opens in the background waits until somebody looks", async (stage) => {
  const page = await stage.open("/runs");
  const live = streams(page);
  await page.addInitScript(hide, true);
  await page.reload({ waitUntil: "load" });
  await live.until(({ begun, open }) => begun > 0 && open() === 0);
  await stage.call("behind-the-back");
  assert.equal(await page.locator(".live-dot.on").count(), 0);
  await page.evaluate(hide, false);
  await page.locator("tr", { hasText: "behind-the-back" }).waitFor();
  await page.locator(".live-dot.on").waitFor();
});

flow("a row keeps its place on the page while others come above it, so that a click opens what was aimed at", async (stage) => {
  for (const run of ["below", "aimed-at", "above"]) await stage.call(run, { agent: "worker" });
  for (const path of ["/", "/runs", "/events"]) {
    const page = await stage.open(path);
    await page.locator(".live-dot.on").waitFor();
    const link = await page.getByRole("link", { name: "aimed-at" }).first().elementHandle();
    const href = await link.getAttribute("href");
    const newcomer = `newcomer-${path.length}`;
    // Both are news, and what is pointed at moves.
    await stage.call("aimed-at", { agent: "worker" });
    await stage.call(newcomer, { agent: "worker" });
    await page.getByRole("link", { name: newcomer }).first().waitFor();
    assert.equal(await link.getAttribute("href"), href, `${path}: the link under the pointer leads elsewhere`);
    assert.equal(await link.evaluate((node) => node.isConnected), true, `${path}: the link is still there`);
    await page.close();
  }
});

flow("a page goes live whichever of its scripts comes last", async (stage) => {
  await stage.call("task");
  const page = await stage.open("/");
  const scripts = await page.locator("script[src]").evaluateAll((all) => all.map((one) => one.getAttribute("src")));
  assert.ok(scripts.length > 1);
  // A script in the head that is not deferred holds the page up, so nothing can come before it.
  for (const late of scripts.slice(1)) {
    const context = page.context();
    const another = await context.newPage();
    const others = new Set(scripts.filter((src) => src !== late));
    const seen = new EventEmitter();
    another.on("requestfinished", (request) => {
      const { pathname, search } = new URL(request.url());
      if (others.delete(pathname + search) && others.size === 0) seen.emit("all");
    });
    await another.route(`**${late}`, async (route) => {
      if (others.size > 0) await once(seen, "all");
      // What came has run, and what it put off, too.
      await another.evaluate(() => new Promise((done) => setTimeout(() => setTimeout(done))));
      await route.continue();
    });
    await another.goto(page.url());
    await another.locator(".live-dot.on").waitFor();
    await another.close();
  }
});
