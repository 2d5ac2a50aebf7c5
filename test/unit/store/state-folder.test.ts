import { expect, test } from "bun:test";
import { homedir } from "node:os";
import { join } from "node:path";
import { cacheFolder, homeFolder, stateFolder } from "../../../src/store/state-folder.ts";

test.each([
  [{ HOME: "/home/me" }, "/home/me/.local/state/cluster-e2e", "/home/me/.cache/cluster-e2e"],
  [
    { HOME: "/home/me", XDG_STATE_HOME: "/s", XDG_CACHE_HOME: "/c" },
    "/s/cluster-e2e",
    "/c/cluster-e2e",
  ],
  // The home folder isn't needed then.
  [{ HOME: "", XDG_STATE_HOME: "/s", XDG_CACHE_HOME: "/c" }, "/s/cluster-e2e", "/c/cluster-e2e"],
  [
    { HOME: "/home/me", XDG_STATE_HOME: "", XDG_CACHE_HOME: "" },
    "/home/me/.local/state/cluster-e2e",
    "/home/me/.cache/cluster-e2e",
  ],
])("with %j, state and cache have folders of their own", (environment, state, cache) => {
  expect([stateFolder(environment), cacheFolder(environment)]).toEqual([state, cache]);
});

test("without HOME, the system knows the user's home folder", () => {
  expect(homeFolder({})).toBe(homedir());
  expect(homeFolder({ HOME: "" })).toBe(homedir());
  expect(cacheFolder({})).toBe(join(homedir(), ".cache", "cluster-e2e"));
});

test.each([
  ["HOME", "me", 'HOME is the relative path "me"'],
  ["XDG_STATE_HOME", "./state", 'XDG_STATE_HOME is the relative path "./state"'],
])("with %s=%j, nothing is written into the current folder", (variable, value, problem) => {
  expect(() => stateFolder({ HOME: "/home/me", [variable]: value })).toThrow(
    expect.objectContaining({
      id: "machine-not-set-up",
      message: expect.stringContaining(problem),
      hint: expect.stringContaining(`Set ${variable} to an absolute path`),
      facts: { variable },
    }),
  );
});
