// Somebody looks at every screen of the console, at two widths, by day and by night.
//
//     node walk.mjs '{"executablePath", "entrance", "axe", "folder", "screens": [{"name", "path", "open"?}], "live"}'
//
// `open`: selectors to click before looking. `live`: a page on which a call is waited for: a line `ready` is printed when
// somebody may make it. At last, what was found wrong is printed as JSON, for each screen.

import { readFileSync } from "node:fs";

import { chromium } from "playwright-core";

const { executablePath, entrance, axe, folder, screens, live } = JSON.parse(process.argv[2]);
const axeSource = readFileSync(axe, "utf8");
const origin = new URL(entrance).origin;
const args = ["--no-sandbox", "--no-proxy-server", "--disable-gpu", "--autoplay-policy=user-gesture-required"];
const browser = await chromium.launch({ executablePath, args });
const context = await browser.newContext();
const found = {};

async function look(page, screen, width, colorScheme) {
  const faults = (found[`${screen.name}-${width}-${colorScheme}`] = []);
  const note = (kind, what) => faults.push(`${kind}: ${what}`);
  page.removeAllListeners();
  page.on("console", (message) => message.type() === "error" && note("console", message.text()));
  page.on("pageerror", (error) => note("script", error.message));
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) note("elsewhere", request.url());
  });
  page.on("response", (response) => response.status() >= 400 && note(response.status(), response.url()));
  page.on("dialog", (dialog) => {
    note("dialog", dialog.message());
    dialog.dismiss();
  });
  await page.setViewportSize({ width, height: 900 });
  await page.emulateMedia({ colorScheme });
  await page.goto(origin + screen.path, { waitUntil: "load" });
  await page.waitForFunction(() => !document.querySelector(".waiting, .htmx-request"), null, { timeout: 120_000 });
  for (const selector of screen.open ?? []) await page.click(selector);
  await page.waitForTimeout(300);
  const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (tooWide > 0) note("too wide", `${tooWide} px`);
  const { violations } = await page.evaluate(`${axeSource}; axe.run(document, { resultTypes: ["violations"] })`);
  for (const { id, nodes } of violations) note("axe", `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
  await page.screenshot({ path: `${folder}/${screen.name}-${width}-${colorScheme}.png`, fullPage: true });
}

try {
  const page = await context.newPage();
  await page.goto(entrance);
  for (const screen of screens) {
    for (const width of [1280, 400]) {
      for (const colorScheme of ["light", "dark"]) await look(page, screen, width, colorScheme);
    }
  }
  if (live) {
    page.removeAllListeners();
    await page.goto(origin + live);
    const before = await page.locator("li.call").count();
    await page.waitForTimeout(500);
    console.log("ready");
    await page.waitForFunction((count) => document.querySelectorAll("li.call").length > count, before);
    await page.waitForFunction(() => !document.querySelector(".chip.running"));
    found.live = [];
  }
  console.log(JSON.stringify(found));
} finally {
  await browser.close();
}
