// Somebody draws the pages of MCP Apps in the console, uses them, and lets hostile ones do what they can.
//
//     node apps.mjs '{"executablePath", "entrance", "axe", "folder", "pages": {"clock", "daylight", "hostile", "flood", "silent"},
//                     "trap", "tries": {"daylight"}}'
//
// `pages`: the addresses of calls whose page is drawn; `tries`: of a tool that is tried. `trap`: an origin that nothing
// may ask for. What was seen is printed as JSON.

import { readFileSync } from "node:fs";

import { chromium } from "playwright-core";

const { executablePath, entrance, axe, folder, pages, tries, trap } = JSON.parse(process.argv[2]);
const axeSource = readFileSync(axe, "utf8");
const origin = new URL(entrance).origin;
const args = ["--no-sandbox", "--no-proxy-server", "--disable-gpu"];
const browser = await chromium.launch({ executablePath, args });
const context = await browser.newContext();
const seen = { elsewhere: [], faults: [], opened: [] };
const page = await context.newPage();

context.on("request", (request) => {
  const url = request.url();
  if (url.startsWith(trap)) return; // the trap knows what has arrived; what was blocked is told here, too
  if (!url.startsWith(origin) && !/^(data|blob|about):/.test(url)) seen.elsewhere.push(url);
});
page.on("dialog", (dialog) => {
  seen.faults.push(`dialog: ${dialog.message()}`);
  dialog.dismiss();
});
page.on("pageerror", (error) => seen.faults.push(`script: ${error.message}`));

async function draw(path) {
  await page.goto(origin + path);
  await page.click("text=Draw its page");
  await page.waitForSelector("[data-app] > iframe");
  return page.frameLocator("[data-app] > iframe");
}

const told = () => page.locator(".doings li").allTextContents();

async function look(name) {
  for (const [width, colorScheme] of [[1280, "light"], [400, "dark"]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    await page.evaluate(() => scrollTo(0, 0));
    await page.waitForTimeout(300); // frames are drawn by a process of their own
    const tooWide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    if (tooWide > 0) seen.faults.push(`${name} is too wide by ${tooWide} px`);
    const run = `${axeSource}; axe.run(document, { resultTypes: ["violations"], iframes: false })`;
    const { violations } = await page.evaluate(run);
    for (const { id, nodes } of violations) seen.faults.push(`${name}: ${id}: ${nodes.map((node) => node.target).join(", ")}`);
    await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

try {
  await page.goto(entrance);
  await page.waitForLoadState("networkidle");

  const clock = await draw(pages.clock);
  const time = clock.locator("#server-time");
  await time.filter({ hasText: /^\d{4}-\d\d-\d\dT/ }).waitFor();
  const before = await time.textContent();
  seen.connected = await page.locator("[data-count]").textContent();
  seen.blockedNothing = await page.locator("[data-blocked]").isHidden();
  await clock.locator("#get-time-btn").click();
  await page.locator(".doings li", { hasText: "called get-time" }).waitFor({ state: "attached" });
  await time.filter({ hasNotText: before }).waitFor();
  seen.clock = [before, await time.textContent()];
  await clock.getByText("Open Link", { exact: false }).first().click();
  await page.waitForSelector(".asking:not([hidden])");
  seen.asked = await page.locator(".asking code").textContent();
  await page.click("[data-refuse-link]");
  await page.locator(".doings li", { hasText: "refused" }).waitFor({ state: "attached" });
  seen.told = await told();

  const year = await draw(pages.daylight);
  await year.locator("button[value='2']").click();
  await year.getByText("28. ", { exact: false }).waitFor();
  seen.daylight = await year.locator("#days").textContent();
  await page.waitForTimeout(6000); // longer than it is waited for pages that say nothing
  seen.isHeard = await page.locator("[data-silent]").isHidden();
  seen.height = await page.locator("[data-app] > iframe").evaluate((frame) => frame.clientHeight);
  await look("app");

  await page.goto(origin + pages.page);
  await page.click("text=Draw the page in block 0");
  const older = page.frameLocator("[data-app] > iframe");
  await older.locator("button").click();
  const name = page.locator("[data-questions] form.asked [name='s:/name']");
  await name.fill("A");
  await page.locator("[data-questions]").getByRole("button", { name: "Accept" }).click();
  await page.getByText("The answer does not fit").waitFor();
  await look("page-asks");
  seen.kept = await name.inputValue();
  await name.fill("Ada");
  await page.locator("[data-questions]").getByRole("button", { name: "Accept" }).click();
  await older.locator("pre", { hasText: "response" }).waitFor();
  seen.older = await older.locator("pre").textContent();
  await page.waitForFunction(() => !document.querySelector("[data-questions]").children.length);
  seen.olderHeight = await page.locator("[data-app] > iframe").evaluate((frame) => frame.clientHeight);
  seen.olderTold = await told();

  await page.goto(origin + tries.daylight);
  await page.click(".go");
  const tried = page.frameLocator("#run [data-app] > iframe");
  await tried.getByText("Hours of daylight at 52.5°").waitFor();
  seen.tried = await tried.locator("#title").textContent();
  await look("try-app");

  const address = page.url();
  const hostile = await draw(pages.hostile);
  await hostile.locator("#done").waitFor({ timeout: 30_000 });
  seen.blocked = await page.locator("[data-blocked]").innerText();
  seen.hostile = JSON.parse(await hostile.locator("#done").textContent());
  await hostile.locator("#done").click({ noWaitAfter: true });
  await page.waitForTimeout(500); // it navigates itself meanwhile
  seen.stayed = page.url() === origin + pages.hostile && address !== page.url();
  seen.tabs = context.pages().length;

  await draw(pages.silent);
  await page.waitForSelector("[data-blocked]:not([hidden])");
  seen.silent = await page.locator("[data-blocked]").innerText();
  seen.spokenFor = await page.locator("[data-silent]").isVisible();
  await page.waitForSelector("[data-silent]:not([hidden])");
  seen.unheard = await page.locator("[data-silent]").innerText();
  seen.unsized = await page.locator("[data-app] > iframe").evaluate((frame) => frame.offsetHeight);
  await look("blocked");

  await draw(pages.needy);
  await page.waitForSelector("[data-blocked]:not([hidden])");
  seen.needy = await page.locator("[data-blocked]").innerText();
  await page.click("text=Let it run that, once");
  await page.frameLocator("[data-app] > iframe").locator("#made:text('4')").waitFor();
  seen.isLet = await page.locator("[data-blocked]").isHidden();
  const mayWrite = () => page.frameLocator("[data-app] > iframe").locator("#may").textContent();
  seen.mayWrite = [await mayWrite()];
  await page.click("text=Give it that, once");
  await page.waitForSelector("iframe[allow]");
  await page.frameLocator("[data-app] > iframe").locator("#made:text('4')").waitFor();
  seen.mayWrite.push(await mayWrite());
  await look("let");
  await page.locator("text=Draw it without").first().click();
  await page.waitForSelector("[data-blocked]:not([hidden])");
  seen.mayWrite.push(await mayWrite());

  await page.goto(origin + pages.flood);
  await page.click("text=Draw its page"); // its frame may be gone before anybody has looked
  await page.getByText("This page was stopped").waitFor();
  seen.stopped = await page.getByText("This page was stopped").textContent();
  seen.alive = await page.evaluate(() => 1 + 1);
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
}
