// What holds for every page: no serious finding of axe, nothing on the console, no other host, no sideways scrolling on a
// phone, a small first load, and whatever agents send shown as text.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { test } from "node:test";
import { onStage } from "./stage.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PAGES = [
  "/", "/runs", "/run?agent=fixer&id=stuck", "/run?agent=default&id=fine", "/agents", "/agent?name=fixer", "/events", "/budgets",
  "/keys", "/dlp", "/detectors", "/alerts", "/settings", "/panic",
];
const LOOKS = {
  light: { colorScheme: "light" },
  dark: { colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 844 } },
};
/** Names that would do something if they could: markup, scripts, terminal escapes, text that runs backwards. */
const HOSTILE = [
  "<script>window.hacked=1</script>",
  "\"><img src=x onerror=\"window.hacked=1\">",
  "';window.hacked=1;//",
  "</title><svg onload=window.hacked=1>",
  "{{ 7*7 }}${7*7}",
  "\u001b[2J\u001b]0;owned\u0007",
  "\u202eevil",
  "javascript:window.hacked=1",
];

async function fill(stage) {
  await stage.call("fine");
  await stage.call("fine", { text: "and my key is sk-1234567890abcdef" });
  await stage.loop("stuck", "fixer");
  await stage.sprag.api("keys", "POST", { agent: "fixer", name: "laptop" });
  await stage.sprag.api("agents/fixer", "PATCH", { policy: { budget: { daily_limit: 5 } } });
}

for (const [name, look] of Object.entries(LOOKS)) {
  test(`every page, ${name}`, () =>
    onStage("", async (stage) => {
      await fill(stage);
      const page = await stage.open("/", look);
      const serious = [];
      for (const path of PAGES) {
        const response = await page.goto(stage.sprag.admin + path);
        assert.equal(response.status(), 200, path);
        await page.locator(".live-dot.on").waitFor({ state: "attached" });
        await page.evaluate(axe);
        const found = await page.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations);
        for (const { id, impact, nodes } of found) {
          if (impact === "serious" || impact === "critical") serious.push(`${path} ${id}: ${nodes.map((node) => node.html).slice(0, 3)}`);
        }
        const sideways = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(sideways <= 0, `${path} is ${sideways} pixels too wide`);
      }
      assert.deepEqual(serious, []);
      stage.assertQuiet();
    }));
}

test("a first load is small and asks nobody else", () =>
  onStage("", async (stage) => {
    await fill(stage);
    for (const path of PAGES) {
      const page = await stage.open(path);
      // A window of its own each time: nothing is in its cache but the page that it signed in on.
      const session = await page.context().newCDPSession(page);
      await session.send("Network.enable");
      await session.send("Network.setCacheDisabled", { cacheDisabled: true });
      let bytes = 0;
      session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
      await page.reload({ waitUntil: "load" });
      assert.ok(bytes > 10_000 && bytes < 150_000, `${path}: ${bytes} bytes`);
      await page.context().close();
    }
    stage.assertQuiet();
  }));

test("what agents send is shown as text everywhere", () =>
  onStage("", async (stage) => {
    for (const [at, text] of HOSTILE.entries()) {
      const run = encodeURIComponent(text);
      const tool = `name=x args=${JSON.stringify({ text })}`;
      await stage.call(run, { text, model: text, mock: { text: "ok" } });
      await stage.call(`${at}-tools`, {
        messages: [
          { role: "user", content: text },
          { role: "assistant", content: text, tool_calls: [{ id: "call_1", type: "function", function: { name: text, arguments: tool } }] },
          { role: "tool", tool_call_id: "call_1", content: text },
        ],
      });
      await stage.sprag.api("kills", "POST", { scope: `agent:held-${at}`, reason: text });
    }
    const { items } = await stage.sprag.api("runs?limit=100");
    assert.ok(items.length >= HOSTILE.length);
    const runs = items.map(({ agent, id }) => `/run?agent=${encodeURIComponent(agent)}&id=${encodeURIComponent(id)}`);
    const page = await stage.open("/");
    for (const path of ["/", "/runs", "/events", "/agents", "/dlp", "/panic", "/settings", "/detectors", ...runs]) {
      await page.goto(stage.sprag.admin + path);
      assert.equal(await page.evaluate(() => window.hacked), undefined, path);
      assert.equal(await page.locator("main img[src=x], main script, main svg[onload]").count(), 0, path);
      assert.doesNotMatch(await page.content(), /[\u0007\u001b]/, path);
    }
    stage.assertQuiet();
  }));
