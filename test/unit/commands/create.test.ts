import { expect, test } from "bun:test";
import { containerDriver } from "../../../src/bin/container-driver.ts";
import { failureOf } from "../../support/failure-of.ts";
import { runCommandLine } from "../../support/run-command.ts";

/** Runs `create` with a backend that must not be called. Returns the usage error. */
const rejected = (words: string) =>
  failureOf(runCommandLine(`create ${words} /nowhere/a.sh`, { driver: containerDriver, backend: {}, nowMs: 0 }));

test.each([
  ["--variant oss --superuser-password x", "--superuser-password: only allowed with --wait"],
  ["--variant oss --summary --dry-run", "--summary: cannot be combined with --dry-run"],
  ["--variant oss --masters 9 --agents 600 --public-agents 600", "--masters, --agents, --public-agents: "],
  ["--variant oss --enable-selinux-enforcing --linux-distribution debian-12", "--enable-selinux-enforcing: "],
])("create %s is rejected before anything is opened", async (words, problem) => {
  expect((await rejected(words)).message).toContain(problem);
});
