// Uses the timeline as a person would, with mouse, keys and fingers, and prints what it saw as JSON; python/tests/test_timeline_browser.py judges it.
// Usage: node e2e/timeline.mjs ADDRESS RUN SEARCH [SCREENSHOT]
import { open } from "./browser.mjs";

const [address, run, text, picture] = process.argv.slice(2);
const { page, context, complaints } = await open(address);
const seen = {};
const place = () => page.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.split("?")[1])));
const length = ({ from, to }) => Number(to) - Number(from);
/** Does something and waits until the address shows another range. */
const moved = async (action) => {
  const before = await place();
  await action();
  await page.waitForFunction((old) => new URLSearchParams(location.hash.split("?")[1]).get("from") !== old, before.from ?? null);
  return place();
};
const ready = () => page.waitForSelector("canvas[data-state=ready]");
const box = async () => await (await page.waitForSelector("canvas")).boundingBox();
/** Where the chosen span is: the middle of its outline. */
const outlined = () =>
  page.evaluate(() => {
    const canvas = document.querySelector("canvas");
    const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const points = [];
    for (let at = 0; at < width * height; at++) if (data[at * 4] === 0xe8 && data[at * 4 + 1] === 0x71 && data[at * 4 + 2] === 0x0a) points.push([at % width, Math.floor(at / width)]);
    const rows = points.map((point) => point[1]).sort((one, two) => one - two);
    return { count: points.length, top: rows[0] ?? -1, bottom: rows[rows.length - 1] ?? -1 };
  });

try {
  await page.goto(`${address}#/timeline?run=${run}`);
  await ready();
  const frame = await box();
  const [middle, below] = [frame.x + frame.width / 2, frame.y + 150];

  // Keys, wheel and mouse move and zoom.
  await page.focus(".stage");
  seen.w = await moved(() => page.keyboard.press("w"));
  seen.up = await moved(() => page.keyboard.press("w"));
  seen.d = await moved(() => page.keyboard.press("d"));
  seen.left = await moved(() => page.keyboard.press("a"));
  seen.s = await moved(() => page.keyboard.press("s"));
  await page.mouse.move(middle, below);
  await page.keyboard.down("Control");
  seen.wheel = await moved(() => page.mouse.wheel(0, -300));
  await page.keyboard.up("Control");
  seen.drag = await moved(async () => {
    await page.mouse.down();
    await page.mouse.move(middle + 100, below, { steps: 4 });
    // A pause, in which the address is written.
    await page.waitForTimeout(400);
    await page.mouse.move(middle + 200, below, { steps: 4 });
    await page.mouse.up();
    await page.waitForTimeout(400);
  });
  await page.reload();
  await ready();
  seen.reloaded = await place();

  // Two fingers.
  const fingers = await context.newCDPSession(page);
  const touch = (type, points) => fingers.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, id]) => ({ x, y: below, id })) });
  seen.pinch = await moved(async () => {
    await touch("touchStart", [[middle - 50, 0], [middle + 50, 1]]);
    await touch("touchMove", [[middle - 120, 0], [middle + 120, 1]]);
    await touch("touchMove", [[middle - 150, 0], [middle + 150, 1]]);
    await touch("touchEnd", []);
  });
  seen.all = await moved(() => page.keyboard.press("0"));

  // Search, from one match to the next and back.
  await page.fill("input[type=search]", text);
  await page.waitForSelector("[data-hits]");
  seen.hits = Number(await page.getAttribute("[data-hits]", "data-hits"));
  await page.keyboard.press("Enter");
  await page.waitForSelector("section[aria-label=Span]");
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).get("hit") === "0");
  seen.first = await page.innerText("section[aria-label=Span] h2");
  await page.waitForTimeout(400);
  seen.firstPlace = await place();
  seen.outlined = await outlined();
  await page.mouse.move(middle, frame.y + (seen.outlined.top + seen.outlined.bottom) / 2);
  seen.hover = await page.innerText(".hover", { timeout: 5000 }).catch(() => "");
  seen.card = await page.innerText("section[aria-label=Span]");
  seen.duration = Number(await page.getAttribute("[data-duration]", "data-duration"));
  if (picture !== undefined) await page.screenshot({ path: picture });
  await page.click("button[aria-label=Next]");
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).get("hit") === "1");
  await page.waitForTimeout(400);
  seen.secondPlace = await place();

  // Back in the history: the first match and what was seen around it, then forward.
  await page.goBack();
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).get("hit") === "0");
  await page.waitForTimeout(400);
  seen.back = await place();
  await page.goForward();
  await page.waitForFunction(() => new URLSearchParams(location.hash.split("?")[1]).get("hit") === "1");
  await page.waitForTimeout(400);
  seen.forward = await place();

  // Links from span to span.
  const link = await page.$("button[data-relation]");
  if (link !== null) {
    seen.relation = await link.getAttribute("data-relation");
    await link.click();
    await page.waitForFunction((old) => new URLSearchParams(location.hash.split("?")[1]).get("span") !== old, seen.forward.span);
    await page.waitForFunction(() => document.querySelector(".waiting") === null);
    seen.linked = await page.innerText("section[aria-label=Span] h2");
    seen.backLinks = await page.$$eval("button[data-relation]", (all) => all.map((one) => one.getAttribute("data-relation")));
  }
  await page.focus(".stage");
  await page.keyboard.press("Escape");
  await page.waitForSelector("section[aria-label=Span]", { state: "detached" });

  // A range, its tables. Wide: what a training does before its first operator takes as long as the machine lets it.
  await moved(() => page.keyboard.press("0"));
  await page.keyboard.down("Shift");
  await page.mouse.move(frame.x + frame.width * 0.1, below);
  await page.mouse.down();
  await page.mouse.move(frame.x + frame.width * 0.97, below, { steps: 3 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
  await page.waitForSelector("section[aria-label='Selected range'] table");
  await page.click("section[aria-label='Selected range'] button:text-is('Operators')");
  await page.waitForFunction(() => location.hash.includes("table=operators"));
  await page.waitForSelector("section[aria-label='Selected range'] table [data-key=self_cpu_time_total]");
  seen.range = await place();
  seen.columns = await page.$$eval("section[aria-label='Selected range'] th button", (all) => all.map((one) => one.dataset.key));
  seen.operators = await page.$$eval("section[aria-label='Selected range'] tbody tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
  await page.click("button[aria-label='Clear the range']");
  await page.waitForSelector("section[aria-label='Selected range']", { state: "detached" });

  // Pins and folds stay.
  await page.click(".tracks summary");
  const pins = await page.$$("button[data-pin]");
  const last = pins[pins.length - 1];
  seen.pinned = await last.getAttribute("data-pin");
  await last.click();
  await page.waitForFunction(() => location.hash.includes("pin="));
  const height = async () => (await box()).height;
  const before = await height();
  await page.evaluate(() => scrollTo(0, 0));
  const { x, y } = await box();
  await page.mouse.click(x + 60, y + 34 + 9);
  await page.waitForFunction(() => location.hash.includes("fold="));
  seen.folded = { before, after: await height() };
  await page.reload();
  await ready();
  seen.kept = await place();

  await page.focus(".stage");
  await page.keyboard.press("?");
  await page.waitForSelector("dialog[open]");
  seen.help = await page.innerText("dialog");
  await page.keyboard.press("Escape");
  await page.waitForSelector("dialog", { state: "detached" });

  await page.setViewportSize({ width: 390, height: 800 });
  seen.phone = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth + 1);
  seen.lengths = Object.fromEntries(["w", "up", "s", "wheel", "pinch", "all"].map((name) => [name, length(seen[name])]));
} catch (error) {
  seen.failed = String(error);
} finally {
  await context.close();
}
seen.complaints = complaints;
console.log(JSON.stringify(seen));
