// Does in a browser what a test says, step by step, and prints what each step came to; python/tests/browser_visits.py has `walk` for it.
// Usage: node e2e/steps.mjs ADDRESS < {"steps": [[VERB, ...], ...], "width": 1280, "height": 800, "offline": false}
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { open, settled, show } from "./browser.mjs";
import { snapshot } from "./snapshot.mjs";

const address = process.argv[2];
const { steps, width, height, offline } = JSON.parse(readFileSync(0, "utf8"));
const { page, context, complaints } = await open(address, { width, height });
if (offline) await context.setOffline(true);

const PATIENCE = 30_000;

/** When the timeline has drawn what it was asked for. */
const drawn = () => page.waitForSelector("canvas[data-state=ready]");

const verbs = {
  show: (view, parameters) => show(page, address, view, parameters),
  reload: async () => {
    await page.reload();
    await settled(page);
  },
  click: async (selector) => {
    await page.click(selector);
    await settled(page);
  },
  /** At a place of what the browser shows. */
  click_at: async (x, y) => {
    await page.mouse.click(x, y);
    await settled(page);
  },
  fill: async (selector, text) => {
    await page.fill(selector, text);
    await settled(page);
  },
  choose: async (selector, value) => {
    await page.selectOption(selector, value);
    await settled(page);
  },
  key: async (name) => {
    await page.keyboard.press(name);
    await settled(page);
  },
  drag: async (x, y, right, down) => {
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(right, down, { steps: 5 });
    await page.mouse.up();
  },
  /** Shift and drag. */
  select: async (x, y, right, down) => {
    await page.keyboard.down("Shift");
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(right, down, { steps: 5 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await settled(page);
  },
  /** Drops a file onto the page. */
  drop: async (path) => {
    const data = await page.evaluateHandle(
      ([name, text]) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([text], name));
        return transfer;
      },
      [basename(path), readFileSync(path, "utf8")],
    );
    for (const event of ["dragover", "drop"]) await page.dispatchEvent("body", event, { dataTransfer: data });
  },
  move: (x, y) => page.mouse.move(x, y, { steps: 2 }),
  wheel: async (x, y, down) => {
    await page.mouse.move(x, y);
    await page.mouse.wheel(0, down);
    await page.waitForTimeout(200);
  },
  drawn,
  wait: (selector) => page.waitForSelector(selector).then(() => null),
  /** Until an expression of the page holds. */
  until: async (expression) => {
    // The page itself may evaluate no text, so that each look is one of the test.
    for (const end = Date.now() + PATIENCE; !(await page.evaluate(expression)); await page.waitForTimeout(50)) {
      if (Date.now() > end) throw new Error("it never came to that");
    }
    return null;
  },
  box: (selector) => page.locator(selector).first().boundingBox(),
  text: (selector) => page.innerText(selector),
  texts: (selector) => page.locator(selector).allInnerTexts(),
  value: (selector) => page.inputValue(selector),
  evaluate: (expression) => page.evaluate(expression),
  parameters: () => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1]))),
  snapshot: () => snapshot(page),
  picture: (path) => page.screenshot({ path }).then(() => null),
};

const told = [];
let failed = null;
try {
  for (const [verb, ...words] of steps) {
    failed = `${verb} ${words.join(" ")}`;
    told.push((await verbs[verb](...words)) ?? null);
  }
  failed = null;
} catch (error) {
  failed = `${failed}: ${String(error)}`;
} finally {
  await context.close();
}
console.log(JSON.stringify({ told, failed, complaints }));
