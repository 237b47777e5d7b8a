// A person in front of a real browser: opens the page that a host sends them to, logs in, and approves.
//
//     node approve.mjs CHROMIUM ADDRESS NAME PASSPHRASE SCREENSHOTS [KEY]
//
// KEY is the hash of a public key, as in HPKP: certificates with it are trusted.
// Prints what was to be seen, as JSON: the texts of both pages, whether a script ran, and where the browser ended.

import { chromium } from "playwright-core";

const [executablePath, address, name, passphrase, screenshots, key] = process.argv.slice(2);
const trusted = key ? [`--ignore-certificate-errors-spki-list=${key}`] : [];
const args = ["--no-sandbox", "--no-proxy-server", ...trusted];
const browser = await chromium.launch({ executablePath, args });
const violations = [];
try {
  const page = await browser.newPage({ viewport: { width: 390, height: 760 }, colorScheme: "dark" });
  page.on("console", (message) => message.type() === "error" && violations.push(message.text()));
  await page.goto(address);
  await page.screenshot({ path: `${screenshots}/login.png` });
  const login = await page.innerText("main");
  await page.getByLabel("Your name").fill(name);
  await page.getByLabel("Passphrase").fill(passphrase);
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await page.screenshot({ path: `${screenshots}/approve-dark.png` });
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1000, height: 800 });
  await page.screenshot({ path: `${screenshots}/approve-light.png` });
  const approval = await page.innerText("main");
  const isWide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth);
  await page.getByRole("button", { name: "Approve" }).click();
  await page.waitForURL((url) => url.pathname === "/done");
  console.log(JSON.stringify({ login, approval, isWide, violations, ended: page.url() }));
} finally {
  await browser.close();
}
