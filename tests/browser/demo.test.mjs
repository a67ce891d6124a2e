// What a newcomer sees of the demo, at the speed of life: the link that it prints, loops caught on the page within a minute,
// and a run that waits for them.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { chromium } from "playwright-core";
import { executable } from "./stage.mjs";

const target = join(process.env.CARGO_TARGET_DIR ?? join(import.meta.dirname, "../../target"), "debug");
const MINUTE = 60_000;

test("the demo is followed from its link to an approved run", async () => {
  const arguments_ = ["demo", "--no-open", "--proxy", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
  const demo = spawn(process.env.SPRAG_BIN ?? join(target, "sprag"), arguments_, { stdio: ["ignore", "pipe", "inherit"] });
  const began = Date.now();
  const told = [];
  let page;
  const browser = await chromium.launch({ executablePath: executable(), args: ["--no-sandbox"] });
  try {
    const lines = createInterface({ input: demo.stdout });
    lines.on("line", (line) => told.push(line));
    const link = await new Promise((found) =>
      lines.on("line", (line) => line.includes("/login?token=") && found(line.trim().split(/\s+/)[1])),
    );
    page = await browser.newPage();
    page.setDefaultTimeout(MINUTE);
    await page.goto(link);
    // The page is not loaded again: what happens comes to it.
    await page.getByRole("link", { name: /night-shift-1/ }).first().waitFor();
    assert.ok(Date.now() - began < MINUTE, "a loop is caught on the page within a minute");
    await page.getByRole("link", { name: /night-shift-1/ }).first().click();
    await page.getByText(/`?fetch_page`? was called \d+ times with the same arguments/).first().waitFor();

    // This one begins later, so the list may get it only now.
    await page.goto(new URL("/runs", link).href);
    await page.getByRole("link", { name: "payments-1", exact: true }).first().click();
    const approve = page.getByRole("button", { name: "Approve" }).first();
    await approve.waitFor();
    await approve.click();
    // It asks again, goes on, and calls the tool that it could not call before.
    await page.getByText("book_all").first().waitFor();
  } catch (error) {
    // What stood on the page, and what the demo told: nobody can go back and look.
    const seen = page ? `${page.url()}\n${await page.locator("body").innerText()}` : "no page";
    throw new Error(`after ${Date.now() - began} ms: ${error.message}\n${seen}\n${told.join("\n")}`, { cause: error });
  } finally {
    await browser.close();
    demo.kill("SIGINT");
  }
  const [code] = await once(demo, "exit");
  assert.equal(code, 0);
});
