// Opens Chromium for tests and screenshots. Requests to any other host than the server's are refused and reported.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** How many times slower the page is to be. Shows what a test does not wait for, and does not fail on a quick machine. */
const SLOWER = Number(process.env.HOTSPAN_SLOWER_BROWSER ?? 1);

/** A page, and what it complained about. */
export async function open(address, { width = 1280, height = 800, dark = false, more = [] } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "hotspan-e2e-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    headless: true,
    args: [...ARGUMENTS, ...more],
    viewport: { width, height },
    colorScheme: dark ? "dark" : "light",
  });
  // Its helpers may still be writing when the browser has gone: what cannot be removed is left to whoever empties the folder.
  context.on("close", () => {
    try {
      rmSync(profile, { recursive: true, force: true, maxRetries: 3 });
    } catch {}
  });
  const page = context.pages()[0] ?? (await context.newPage());
  if (SLOWER > 1) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
  const complaints = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const own = new URL(address).host;
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith("http") && url.host !== own) complaints.push(`request to ${url.host}`);
  });
  return { page, context, complaints };
}

/** Waits until nothing is loading, after what was asked for has been drawn. */
export async function settled(page) {
  await page.waitForSelector("main");
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
  await page.waitForFunction(() => document.querySelector(".waiting") === null);
}

/** Goes to a view and waits until it has loaded. */
export async function show(page, address, view, parameters = "") {
  await page.goto(`${address}#/${view}${parameters}`);
  await page.waitForFunction((name) => document.querySelector("main")?.dataset.view === name || document.querySelector("main .empty") !== null, view);
  await settled(page);
}
