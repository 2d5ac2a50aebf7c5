/**
 * Chromium as the browser that `web` finds on a desktop. It runs without a screen, and records what it saw for the
 * test.
 */
import { existsSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Ended } from "./executable.ts";
import { repository } from "./executable.ts";

const lacking = ["chromium", "certutil"].filter((program) => Bun.which(program) === null);

/** Why tests with a browser are skipped here; never on a build machine, which `scripts/setup --tests` gives one. */
export const browserLack =
  lacking.length === 0 || process.env["CI"] !== undefined
    ? undefined
    : `not here: ${lacking.join(", ")}`;

export interface Page {
  /** All words that are shown. */
  readonly text: string;
  /** A PNG file. */
  readonly picture: string;
}

export interface Visit {
  readonly url: string;
  /** Why the browser did not show the page, where it did not. */
  readonly refusal?: string;
  /** The page, or the login and what came after it. */
  readonly pages: readonly Page[];
}

export interface Browser {
  /** What importing a certificate as an authority's does. */
  trust(certificateFile: string): Promise<void>;
  /**
   * Runs what opens the browser, with the environment that makes it open this one, and waits until that has seen all.
   * Pictures stay in the folder of CLUSTER_E2E_SCREENSHOTS, where that is set, as `<name>-1.png` and so on.
   */
  visit(
    name: string,
    open: (environment: Readonly<Record<string, string>>) => Promise<Ended>,
  ): Promise<Visit & Ended>;
}

/** In a folder of its own, which is its user's home: what that user trusts stands there. */
export async function startBrowser(folder: string): Promise<Browser> {
  const pictures = resolve(repository, process.env["CLUSTER_E2E_SCREENSHOTS"] ?? folder);
  const trusted = join(folder, ".pki", "nssdb");
  await Promise.all([pictures, trusted].map((path) => mkdir(path, { recursive: true })));
  await Bun.$`certutil -d sql:${trusted} -N --empty-password`.quiet();
  return {
    trust: async (file) => {
      await Bun.$`certutil -d sql:${trusted} -A -t C,, -n cluster -i ${file}`.quiet();
    },
    visit: async (name, open) => {
      const place = join(folder, name);
      await writeOpener(place, join(pictures, name));
      const ended = await open({ HOME: folder, PATH: `${place}:${process.env["PATH"]}` });
      return { ...ended, ...(await noted(place)) };
    },
  };
}

async function writeOpener(place: string, pictures: string): Promise<void> {
  const argv = [
    "timeout",
    "60",
    process.execPath,
    join(import.meta.dir, "browser-program.ts"),
    place,
    pictures,
  ];
  const opener = join(place, "xdg-open");
  const words = argv.map((word) => Bun.$.escape(word)).join(" ");
  await Bun.write(opener, `#!/bin/sh\nexec ${words} "$1" >'${place}/log' 2>&1\n`);
  await chmod(opener, 0o755);
}

async function noted(place: string): Promise<Visit> {
  const seen = join(place, "seen.json");
  const log = join(place, "log");
  for (const limit = Date.now() + 400_000; !existsSync(seen); await Bun.sleep(100)) {
    if (Date.now() > limit)
      throw new Error(
        `the browser saw nothing: ${existsSync(log) ? await Bun.file(log).text() : ""}`,
      );
  }
  return (await Bun.file(seen).json()) as Visit;
}

/** Size of a picture, and how many colours it has, counted to 256. */
export async function look(
  picture: string,
): Promise<{ width: number; height: number; colours: number }> {
  const { width, height } = await new Bun.Image(picture).metadata();
  const indexed = await new Bun.Image(picture).png({ palette: true }).buffer();
  // Such a PNG lists its colours, three bytes each, behind the length of that list.
  return { width, height, colours: indexed.readUInt32BE(indexed.indexOf("PLTE") - 4) / 3 };
}
