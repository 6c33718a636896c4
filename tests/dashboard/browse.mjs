// Drives Chromium over a page of `gcluster dashboard`: node browse.mjs STEPS.json
// Steps: {url, steps: [{width, height, dark, goto, open (a file, not the dashboard), press, type: [selector, text], click, wait, shot, evaluate}]}
// Prints JSON: {messages: what the console and the page complained of, requests: addresses asked, values: of each evaluate}
import { readFileSync } from "node:fs";
import puppeteer from "puppeteer-core";

const { url, chromium, steps } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"] });
const page = await browser.newPage();
const messages = [], requests = [], values = [];
page.on("console", (said) => { if (["error", "warn"].includes(said.type())) messages.push(said.text()); });
page.on("pageerror", (error) => messages.push(String(error)));
page.on("dialog", async (dialog) => { messages.push(`dialog: ${dialog.message()}`); await dialog.dismiss(); });
page.on("request", (request) => requests.push(request.url()));
let at = null;
try {
  for (const step of steps) {
    at = step;
    if (step.width) await page.setViewport({ width: step.width, height: step.height });
    if ("dark" in step) await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: step.dark ? "dark" : "light" }]);
    if ("goto" in step) {
      await page.goto("about:blank");
      await page.goto(url + step.goto, { waitUntil: "load" });
      await page.waitForSelector("html[data-ready]");
    }
    if (step.open) await page.goto(url, { waitUntil: "load" });
    for (const key of step.press ?? []) await page.keyboard.press(key);
    if (step.type) await page.type(...step.type);
    if (step.click) await page.click(step.click);
    if (step.wait) await page.waitForSelector(step.wait);
    if (step.until) await page.waitForFunction(step.until);
    if (step.shot) await page.screenshot({ path: step.shot });
    if (step.evaluate) values.push(await page.evaluate(step.evaluate));
  }
} catch (error) {
  const state = await page.evaluate("location.hash + ' ' + document.activeElement?.id + ' ' + document.getElementById('problem')?.textContent");
  throw new Error(`at ${JSON.stringify(at)}: ${state}: ${messages}`, { cause: error });
} finally {
  await browser.close();
}
console.log(JSON.stringify({ messages, requests, values }));
