// Follows rows of tables to what they stand for, and counts clicks and keys; python/tests/test_view_doors.py judges it.
// Usage: node e2e/doors.mjs ADDRESS < {"run": RUN, "operator": NAME, "kernel": NAME, "hostile": NAME, "begin": NANOSECONDS, "end": NANOSECONDS}
import { settled, show } from "./browser.mjs";
import { perform, start } from "./harness.mjs";

const browser = await start({ width: 1366, height: 768 });
const { page, address, parameters } = browser;
const { run, operator, kernel, hostile, begin, end } = browser.wanted;
let clicks = 0;
const click = async (target) => {
  clicks += 1;
  await target.click();
};
/** The row of the first table of the view whose link has this text. */
const row = (name) => page.locator("main tbody tr", { has: page.locator(`a.door:text-is(${JSON.stringify(name)})`) }).first();
const panel = page.locator("aside.panel");
const loaded = async () => {
  await panel.locator("dl").waitFor();
  await settled(page);
};
/** What the panel says. */
const told = async () => {
  await loaded();
  return {
    name: await panel.locator("h2").first().innerText(),
    facts: Object.fromEntries(await panel.locator("dd[data-value]").evaluateAll((all) => all.map((one) => [one.dataset.key, one.dataset.value]))),
    headings: await panel.locator("h2, h3").allInnerTexts(),
    text: await panel.innerText(),
    calls: await panel.locator("a[data-span]").evaluateAll((all) => all.map((one) => Number(one.dataset.span))),
    buckets: await panel.locator(".histogram .value").allInnerTexts(),
    markup: await panel.locator("img, script, iframe").count(),
  };
};
const focused = () => page.evaluate(() => ({ tag: document.activeElement?.tagName, text: document.activeElement?.textContent, id: document.activeElement?.id, span: document.activeElement?.getAttribute("data-span") }));
/** Presses Tab until the focus is where it is wanted. */
const tabTo = async (selector, most = 60) => {
  for (let pressed = 1; pressed <= most; pressed++) {
    await page.keyboard.press("Tab");
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector)) return pressed;
  }
  throw new Error(`the key Tab does not lead to ${selector}`);
};
const span = async () => {
  await page.waitForSelector("section[aria-label=Span]");
  await settled(page);
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).has("from"));
  return { name: await page.innerText("section[aria-label=Span] h2"), duration: Number(await page.getAttribute("[data-duration]", "data-duration")), place: await parameters() };
};

async function slowest() {
  clicks = 0;
  await show(page, address, "operators", `?run=${run}`);
  await click(row(operator));
  const thing = await told();
  await click(panel.locator("a[data-span]").first());
  const first = await span();
  const found = { thing, first, clicks };
  // The panel stays beside the timeline: the next call is one click away, and is gone to.
  await click(panel.locator("a[data-span]").nth(1));
  await page.waitForFunction((old) => new URLSearchParams(location.hash.split("?")[1]).get("span") !== old, first.place.span);
  found.second = await span();
  return found;
}

async function upwards() {
  clicks = 0;
  await show(page, address, "kernels", `?run=${run}`);
  await click(row(kernel));
  const thing = await told();
  await click(
    panel
      .locator("section.table", { has: page.locator("h2:text-is('Launched by')") })
      .locator("a.door")
      .first(),
  );
  await page.waitForFunction((name) => document.querySelector("#panel-name")?.textContent === name, operator);
  return { thing, operator: await told(), clicks };
}

async function keyboard() {
  await show(page, address, "operators", `?run=${run}`);
  await page.waitForSelector("section.table input[type=search]");
  await page.keyboard.press("/");
  await page.keyboard.type(operator);
  await page.waitForFunction(() => location.hash.includes("filter="));
  await tabTo("a.door");
  await page.keyboard.press("Enter");
  await loaded();
  const inside = await focused();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  const back = await focused();
  await page.keyboard.press("Enter");
  await loaded();
  await tabTo("a[data-span]");
  await page.keyboard.press("Enter");
  return { inside, back, span: await span() };
}

async function arrows() {
  await show(page, address, "operators", `?run=${run}`);
  await page.locator("main a.door").first().focus();
  const first = await focused();
  await page.keyboard.press("ArrowDown");
  const second = await focused();
  await page.keyboard.press("ArrowUp");
  return { first, second, again: await focused() };
}

async function shared() {
  await show(page, address, "operators", `?run=${run}&sort=-count`);
  await row(operator).click();
  const before = await told();
  const link = page.url();
  await page.goto("about:blank");
  await page.goto(link);
  const after = await told();
  await page.goBack();
  await page.goForward();
  return { before, after, again: await told(), sort: (await parameters()).sort };
}

async function range() {
  await show(page, address, "timeline", `?run=${run}&begin=${begin}&end=${end}&table=operators`);
  await page.waitForSelector("section[aria-label='Selected range'] a.door");
  await row(operator).click();
  return { thing: await told() };
}

async function gap() {
  clicks = 0;
  await show(page, address, "gpu", `?run=${run}`);
  await click(
    page
      .locator("section.table", { has: page.locator("h2:text-is('Longest gaps')") })
      .locator("tbody tr")
      .nth(1),
  );
  const thing = await told();
  await click(panel.locator("a[data-stretch]"));
  await page.waitForSelector("canvas[data-state=ready]");
  return { thing, clicks, place: await parameters() };
}

async function module() {
  await show(page, address, "modules", `?run=${run}`);
  await page.focus("table[role=treegrid] tbody tr");
  await page.keyboard.press("Enter");
  await loaded();
  const inside = await focused();
  const thing = await told();
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  return { inside, thing, back: await focused() };
}

async function function_() {
  await show(page, address, "functions", `?run=${run}&filter=train`);
  await row("train").click();
  return told();
}

async function allocation() {
  await show(page, address, "memory", `?run=${run}`);
  await page
    .locator("section.table", { has: page.locator("h2:text-is('Allocations')") })
    .locator("tbody tr")
    .first()
    .click();
  return told();
}

async function names() {
  await show(page, address, "operators", `?run=${run}`);
  await row(hostile).click();
  return told();
}

async function phone() {
  await page.setViewportSize({ width: 390, height: 800 });
  await show(page, address, "operators", `?run=${run}`);
  await page.locator("main a.door").first().click();
  await loaded();
  const box = await panel.boundingBox();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1 || document.querySelector(".panel").scrollWidth > innerWidth + 1);
  await panel.locator("a[data-span]").first().click();
  await span();
  const covered = await panel.count();
  await page.setViewportSize({ width: 1366, height: 768 });
  return { box, wide, covered };
}

await perform(browser, [slowest, upwards, keyboard, arrows, shared, range, gap, module, function_, allocation, names, phone]);
