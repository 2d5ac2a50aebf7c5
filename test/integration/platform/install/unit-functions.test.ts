import { expect, test } from "bun:test";
import { chmod, readFile } from "node:fs/promises";
import { join } from "node:path";
import { completeScript } from "../../../../src/platform/install/phase.ts";
import unitFunctions from "../../../../src/platform/install/unit-functions.sh" with { type: "text" };
import { runShell } from "../../../support/prepare-machine.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const answers = [
  ["a unit that it reads as it is on the disk", "LoadState=loaded\\nNeedDaemonReload=no", false],
  ["a unit that it read before a change", "LoadState=loaded\\nNeedDaemonReload=yes", true],
  ["a unit that it does not find", "LoadState=not-found\\nNeedDaemonReload=no", true],
  ["a unit of which it says nothing", "", true],
] as const;

test.each(answers)(
  "systemd, with %s, is told to read all units again: only if it must",
  async (_unit, answer, reloads) => {
    await using folder = await scratchFolder();
    const calls = join(folder.path, "calls");
    const systemctl = join(folder.path, "systemctl");
    await Bun.write(
      systemctl,
      `#!/bin/sh\necho "$*" >>${calls}\n[ "$1" != show ] || printf '${answer}\\n'\n`,
    );
    await chmod(systemctl, 0o755);
    // completeScript sets a path of its own, which has no place for this systemctl.
    const script = completeScript(
      `${unitFunctions}main() { PATH=${folder.path}:$PATH; reload_unless_read my-unit; }`,
    );
    expect(await runShell(["sh", "-s", "--", "e2e-test"], script, undefined)).toMatchObject({
      status: 0,
      stderr: "",
    });
    const shown = "show -p LoadState -p NeedDaemonReload my-unit.service\n";
    expect(await readFile(calls, "utf8")).toBe(reloads ? `${shown}daemon-reload\n` : shown);
  },
);
