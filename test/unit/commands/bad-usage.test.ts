/** Command lines that are refused before any request, and what the error names. test/e2e/bad-input.test.ts shows what the program makes of it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { failureOf } from "../../support/failure-of.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const opened = new AsyncDisposableStack();
const state = { folder: "" };

beforeAll(async () => {
  state.folder = opened.use(await scratchFolder()).path;
  await mkdir(join(state.folder, "genconf-with-config"));
  const files = {
    "artifact.sh": "#!/bin/bash\n# variant: oss\nexit 1\n",
    "list.yaml": "- a\n- b\n",
    "superuser.yaml": "superuser_password_hash: $6$salt$hash\n",
    "broken.yaml": "a: [1\nb: 2\n",
    "genconf-with-config/config.yaml": "a: 1\n",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(state.folder, name), text);
});

afterAll(async () => opened.disposeAsync());

const create = ["create", "--variant", "oss", "artifact.sh"];

// Shows R24, R28, R29, R44, R59.
test.each<[string, readonly string[], string]>([
  ["an unknown option", [...create, "--master", "3"], "--masters"],
  ["an option given twice", [...create, "--agents", "1", "--agents", "2"], "--agents"],
  ["no --variant", ["create", "artifact.sh"], "--variant"],
  ["an unknown --variant", ["create", "--variant", "open", "artifact.sh"], "--variant"],
  ["no masters", [...create, "--masters", "0"], "--masters"],
  ["a negative number", [...create, "--agents=-1"], "--agents"],
  ["more than 1,000 nodes", [...create, "--agents", "600", "--public-agents", "600"], "1000"],
  ["a tag without a value", [...create, "--custom-tag", "team"], "--custom-tag"],
  ["a reserved tag", [...create, "--custom-tag", "aws:x:1"], "aws:"],
  ["our own tag prefix", [...create, "--custom-tag", "cluster-e2e:role:x"], "cluster-e2e"],
  ["an over-long tag", [...create, "--custom-tag", `${"k".repeat(129)}:v`], "128"],
  ["a tag twice", [...create, "--custom-tag", "a:1", "--custom-tag", "a:2"], "--custom-tag"],
  ["YAML that is no mapping", [...create, "--extra-config", "list.yaml"], "list.yaml"],
  ["broken YAML", [...create, "--extra-config", "broken.yaml"], "broken.yaml"],
  ["a missing YAML file", [...create, "--extra-config", "none.yaml"], "none.yaml"],
  ["a missing genconf folder", [...create, "--genconf-dir", "none"], "none"],
  [
    "a genconf folder with config.yaml",
    [...create, "--genconf-dir", "genconf-with-config"],
    "--extra-config",
  ],
  [
    "a missing license file",
    ["create", "--variant", "enterprise", "--license-key", "none.txt", "artifact.sh"],
    "none.txt",
  ],
  [
    "a superuser whose password nobody gave",
    [
      "create",
      "--variant",
      "enterprise",
      "--wait",
      "--extra-config",
      "superuser.yaml",
      "artifact.sh",
    ],
    "--superuser-password",
  ],
  ["a superuser's password for nobody", [...create, "--superuser-password", "secret"], "--wait"],
  ["a relative local side", [...create, "--copy-to-master", "artifact.sh:/x"], "--copy-to-master"],
  [
    "a relative remote side",
    [...create, "--copy-to-master", "/etc/hostname:x"],
    "--copy-to-master",
  ],
  ["a security mode for oss", [...create, "--security-mode", "strict"], "--security-mode"],
  [
    "SELinux where there is none",
    [...create, "--linux-distribution", "debian-12", "--enable-selinux-enforcing"],
    "SELinux",
  ],
  ["an unknown distribution", [...create, "--linux-distribution", "plan-9"], "centos-7"],
  ["a bad address range", [...create, "--admin-cidr", "10.0.0.0/33"], "--admin-cidr"],
  ["a bad cluster id", [...create, "-c", "../x"], "--cluster-id"],
  ["a bad --env", ["run", "--env", "NOVALUE", "true"], "--env"],
  ["a missing --env-file", ["run", "--env-file", "none.env", "true"], "none.env"],
  ["a bad line in an --env-file", ["run", "--env-file", "list.yaml", "true"], "list.yaml, line 1"],
  ["a bad duration", ["wait", "--timeout", "soon"], "--timeout"],
])("%s is refused, and named", async (_what, words, named) => {
  const setting = { kind: cloudKind, backend: {}, nowMs: 0, cwd: state.folder };
  const failure = await failureOf(runCommandLine(words.join(" "), setting));
  expect(failure).toMatchObject({ id: "bad-usage", message: expect.stringContaining(named) });
});
