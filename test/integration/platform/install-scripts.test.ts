import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import {
  stateCommand,
  sumsCommand,
  unpackCommand,
} from "../../../src/platform/checkout/checkout-sync.ts";
import { secretsScript } from "../../../src/platform/cluster-secrets.ts";
import bootstrapServer from "../../../src/platform/install/bootstrap/bootstrap-server.py" with { type: "text" };
import { serveScript } from "../../../src/platform/install/bootstrap/serve.ts";
import { versionScript, fetchScript } from "../../../src/platform/install/fetch-artifact.ts";
import { genconfScript, plainGenconf } from "../../../src/platform/install/genconf.ts";
import { completeScript } from "../../../src/platform/install/phase.ts";
import {
  prepareScript,
  selinuxScript,
} from "../../../src/platform/install/prepare/prepare-node.ts";
import runnerStart from "../../../src/platform/install/runner-start.sh" with { type: "text" };
import { installRunner, startInstallScript } from "../../../src/platform/install/start-install.ts";
import { dcosLayout } from "../../../src/platform/layouts/dcos.ts";
import { installWork } from "../../../src/platform/install-paths.ts";
import { layouts, imagePreparation } from "../../../src/platform/layouts/find-layout.ts";
import type { LayoutUpgrade } from "../../../src/platform/layouts/layout.ts";
import { nodeVersionScript } from "../../../src/platform/upgrade/node-version.ts";
import { startUpgradeScript, upgradeRunner } from "../../../src/platform/upgrade/start-upgrade.ts";
import { logsScript } from "../../../src/platform/node-logs.ts";
import { superuserScript } from "../../../src/platform/readiness/ask-web.ts";
import { nodeScript } from "../../../src/platform/readiness/node-question.ts";
import { resolversScript } from "../../../src/platform/resolvers.ts";
import { shellText } from "../../../src/ssh/shell-text.ts";
import { intoFolder } from "../../support/install-machine.ts";
import { runShell } from "../../support/prepare-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const secret = "0123456789abcdef0123456789abcdef";
const source = { url: `http://10.0.0.1:18080/${secret}`, release: "1.10.11" };
const server = {
  address: "10.0.0.1",
  port: 18_080,
  secret,
  nodeAddresses: ["10.0.0.1", "10.0.0.2"],
  expectedAddresses: ["10.0.0.1", "10.0.0.2"],
  installScript: "cluster_install.sh",
  folder: installWork.serve,
  longestSeconds: 7200,
};
const superuser = superuserScript({
  release: layouts[0].release!,
  loginBody: '{"uid": "a\\\\"b"}',
});
const scripts: readonly (readonly [name: string, text: string])[] = [
  ["image preparation", imagePreparation(dcosLayout)!.script],
  ["selinux", completeScript(selinuxScript)],
  ["serve", completeScript(serveScript(server))],
  ["fetch", fetchScript(installWork)],
  ["version", versionScript(installWork)],
  ["genconf", genconfScript(plainGenconf)],
  [
    "upgrade genconf",
    genconfScript({ ...plainGenconf, words: ["--upgrade", "1.0"], linePrefix: "URL: " }),
  ],
  ["node version", nodeVersionScript],
  ["node", nodeScript],
  ["logs", logsScript({})],
  ["secrets", secretsScript],
  ["resolvers", resolversScript],
  ["sync state", stateCommand(layouts)[2]],
  ["sync sums", sumsCommand([], layouts[0])[2]],
  [
    "sync",
    unpackCommand({
      layout: layouts[0],
      list: "own",
      files: [],
      unchanged: [],
      emptiedFolders: [],
      removedFolders: [],
      removedFiles: [],
      keptFiles: [],
    })[2],
  ],
  ["superuser", superuser],
  ...layouts.flatMap((layout): (readonly [string, string])[] => [
    [`prepare ${layout.name}`, completeScript(prepareScript(layout))],
    [`start ${layout.name}`, completeScript(startInstallScript(layout, "public_agent", source))],
    [`runner ${layout.name}`, installRunner(layout, "public_agent", source)],
    ...(layout.upgrade === undefined ? [] : upgradeScripts(layout.name, layout.upgrade)),
  ]),
];

function upgradeScripts(
  name: string,
  upgrade: LayoutUpgrade,
): readonly (readonly [string, string])[] {
  const node = { url: source.url, script: "upgrade.sh", from: "1.0 'old'", to: "2.0" };
  return [
    [`start upgrade ${name}`, completeScript(startUpgradeScript(upgrade, "agent", node))],
    [`upgrade runner ${name}`, upgradeRunner(upgrade, "agent", node)],
  ];
}

/** A program on the PATH may be a version manager's shim without a version. */
const canRun = (name: string): boolean =>
  Bun.which(name) !== null && Bun.spawnSync([name, "--version"]).success;

describe("every script for nodes", () => {
  test.each(scripts)("sh can parse %s", async (_name, text) => {
    expect(await runShell(["sh", "-n"], text, undefined)).toMatchObject({ status: 0, stderr: "" });
  });

  // Shows R111.
  test.skipIf(Bun.which("shellcheck") === null).each(scripts)(
    "%s pleases shellcheck",
    async (_name, text) => {
      // The values are quoted texts, some of them scripts, and not every script uses all of its functions.
      const argv = ["shellcheck", "--shell=sh", "--exclude=SC1003,SC2016,SC2034,SC2317", "-"];
      expect((await runShell(argv, text, undefined)).stdout).toBe("");
    },
  );

  test.each(scripts)("%s gets all of its values", (_name, text) => {
    const used = [...text.matchAll(/\$\{?([A-Z][A-Z0-9]+(?:_\w+)*)\b(?![\w:-])/g)].map(
      ([, name]) => name!,
    );
    const given = [...text.matchAll(/(?:^|[\s'"])([A-Z][A-Z0-9]+(?:_\w+)*)=/g)].map(
      ([, name]) => name!,
    );
    // Names that end with an underscore are completed with that of a layout.
    const isGiven = (name: string): boolean =>
      name.endsWith("_")
        ? layouts.every((layout) => given.includes(name + layout.name))
        : given.includes(name);
    expect(used.filter((name) => !isGiven(name) && name !== "PWD")).toEqual([]);
  });

  test.each(["python3", "python2.7"].filter(canRun))(
    "the bootstrap server is read by %s",
    async (python) => {
      const compile = "import sys; compile(sys.stdin.read(), 'server', 'exec')";
      expect(await runShell([python, "-c", compile], bootstrapServer, undefined)).toMatchObject({
        status: 0,
        stderr: "",
      });
    },
  );
});

test("a bootstrap server that answers after minutes counts as started", async () => {
  await using folder = await scratchFolder();
  for (const name of ["etc/systemd/system", "var/lib/cluster-e2e"])
    await mkdir(join(folder.path, name), { recursive: true });
  const slept = join(folder.path, "slept");
  await Bun.write(slept, "");
  const uptime = join(folder.path, "uptime");
  await Bun.write(uptime, "0.00 0\n");
  // Each look takes 20 seconds.
  const machine = `systemctl() { :; }
journalctl() { :; }
sleep() { echo >>${slept}; echo "$(($(looks) * 20)).00 0" >${uptime}; }
looks() { wc -l <${slept}; }
curl() { [ "$(looks)" -ge 10 ]; }
`;
  const text = completeScript(serveScript(server)).replaceAll("/proc/uptime", uptime);
  const script = machine + intoFolder(text, folder.path);
  expect(await runShell(["sh", "-s", "e2e-serve"], script, undefined)).toMatchObject({
    status: 0,
    stderr: "",
  });
});

test("an old release's install script gets a Docker version without components, and every other call is Docker's own", async () => {
  await using folder = await scratchFolder();
  const runner = intoFolder(installRunner(dcosLayout, "master", source), folder.path);
  const values = runner.slice(0, runner.indexOf('cd "$FOLDER"'));
  const replace = runner.slice(runner.indexOf("shim() {"), runner.indexOf("# Whether everything"));
  const shim = `${values}${replace}for program in $SHIMS; do shim "$program"; done\n`;
  const docker = join(folder.path, "real", "docker");
  await Bun.write(docker, '#!/bin/sh\necho "$*"\n');
  await chmod(docker, 0o755);
  const path = `${join(folder.path, "real")}:${process.env["PATH"]}`;
  const ended = await runShell(
    ["sh", "-eu"],
    `${shim}docker version\ndocker version --format x\ndocker info\n`,
    {
      PATH: path,
    },
  );
  expect(ended).toMatchObject({ status: 0, stderr: "" });
  expect(ended.stdout).toBe(
    "version --format Client:\n Version: {{.Client.Version}}\nServer:\n Version: {{.Server.Version}}\nversion --format x\ninfo\n",
  );
  expect(installRunner(dcosLayout, "master", { ...source, release: "1.13.9" })).toContain(
    "SHIMS=''\n",
  );
});

test("a clock that is set forward doesn't end a unit's patience with the bootstrap server", async () => {
  await using folder = await scratchFolder();
  const tries = join(folder.path, "tries");
  const log = join(folder.path, "log");
  const values = { FOLDER: folder.path, LOG_FILE: log, BOOTSTRAP_URL: "", LOGIN_ENVIRONMENT: "" };
  const machine = `sleep() { :; }
curl() { echo >>${tries}; [ "$(wc -l <${tries})" -ge 3 ]; }
date() { if [ -e ${tries} ]; then echo 2000000000; else echo 1000000000; fi; }
`;
  const main = "limit 300; until ask a; do pause || exit 1; done";
  const script = `${machine}${shellText(runnerStart, values)}${main}`;
  expect(await runShell(["sh", "-c", script], "", undefined)).toMatchObject({ status: 0 });
});
