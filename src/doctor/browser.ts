import type { Environment } from "../system/environment.ts";
import { type Check, localLimitMs, type Outcome, pass, warn } from "../model/check.ts";

const screens = ["DISPLAY", "WAYLAND_DISPLAY"];

/** Checks for the program with which `web` opens the web UI. It is only a convenience, because `web` also prints the address. */
export function browserCheck(platform: string, environment: Environment): Check {
  return { name: "browser", limitMs: localLimitMs, run: () => Promise.resolve(findOpener(platform, environment)) };
}

function findOpener(platform: string, environment: Environment): Outcome {
  const opener = platform === "darwin" ? "open" : "xdg-open";
  const path = Bun.which(opener, { PATH: environment["PATH"] ?? "" });
  const otherwise = "or open the address that web prints in a browser elsewhere.";
  if (path === null) {
    return warn(
      `web cannot open a browser: there is no ${opener} on the PATH.`,
      `Install it (xdg-utils on most Linux distributions), ${otherwise}`,
    );
  }
  const hasScreen = platform === "darwin" || screens.some((name) => (environment[name] ?? "") !== "");
  if (!hasScreen) {
    return warn(
      `web cannot open a browser: no ${screens.join(" or ")} is set.`,
      `Use a graphical session, ${otherwise}`,
    );
  }
  return pass(`web opens the web UI with ${path}`);
}
