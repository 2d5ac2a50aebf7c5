/**
 * A person at a desktop's browser: opens the page in Chromium, logs in where it asks for that, and notes what there was to be seen.
 * Whom it trusts stands in its HOME. Usage: browser-program.ts FOLDER PICTURES URL; PICTURES is how their paths begin.
 */
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { Page, Visit } from "./browser.ts";

const [folder = "", pictures = "", url = ""] = process.argv.slice(2);
const size = { width: 1280, height: 960 };
const flags =
  "--no-sandbox --disable-quic --disable-sync --disable-background-networking --disable-component-update --no-first-run";
const path = Bun.which("chromium") ?? "chromium";
const chromium = {
  type: "chrome",
  url: false,
  path,
  argv: flags.split(" "),
  stderr: "inherit",
} as const;

async function visit(): Promise<Visit> {
  const view = new Bun.WebView({
    ...size,
    backend: chromium,
    dataStore: { directory: join(folder, "profile") },
  });
  await view.navigate(url);
  // Otherwise the page has the window's size less the height of tabs that are not there.
  await view.cdp("Emulation.setDeviceMetricsOverride", {
    ...size,
    deviceScaleFactor: 1,
    mobile: false,
  });
  const first = await look(view, 1, /Password|masters up/);
  if (!first.text.includes("Password")) return { url, pages: [first] };
  for (const name of ["uid", "password"]) {
    await view.click(`input[name=${name}]`);
    await view.type("admin");
  }
  await view.press("Enter");
  return { url, pages: [first, await look(view, 2, /masters up/)] };
}

/** What is on the page once these words are: it asks the cluster for what it shows after it was loaded. */
async function look(view: Bun.WebView, number: number, words: RegExp): Promise<Page> {
  const text = async (): Promise<string> =>
    (await view.evaluate<string>("document.body.innerText")).replaceAll(/\s+/g, " ");
  while (!words.test(await text())) await Bun.sleep(100);
  const picture = `${pictures}-${number}.png`;
  await Bun.write(picture, await view.screenshot());
  return { text: await text(), picture };
}

/** A browser that ends before it has shown anything is started again: that happens where Chromium starts on a busy computer. */
async function attempt(more: number): Promise<Visit> {
  const seen = await visit().catch((error: unknown) => ({
    url,
    refusal: String(error),
    pages: [],
  }));
  Bun.WebView.closeAll();
  return more > 0 && seen.pages.length === 0 && seen.refusal?.includes("closed the pipe") === true
    ? attempt(more - 1)
    : seen;
}

const seen = await attempt(2);
// All of it at once: somebody waits for it.
await Bun.write(join(folder, "seen"), JSON.stringify(seen));
await rename(join(folder, "seen"), join(folder, "seen.json"));
