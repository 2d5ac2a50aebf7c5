/** Configuration keys that a layout adds: which clusters get them, and that the user's take precedence. */
import { describe, expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installOn } from "../../../../src/cluster/create.ts";
import { launchedMachines } from "../../../../src/library/install-from-path.ts";
import type { InstallPlan } from "../../../../src/platform/install/install-plan.ts";
import { openInstallation } from "../../../../src/platform/install/steps.ts";
import { dcosLayout } from "../../../../src/platform/layouts/dcos.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import {
  added,
  exampleCluster,
  examplePlan,
  exampleTraits,
} from "../../../support/install-example.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** A node that has everything, including Docker. */
const completeNode = {
  ...Object.fromEntries(
    ["docker", "unzip", "ipset", "ping", "ifconfig", "dig", "getent", "swapoff"].map((name) => [
      name,
      "#!/bin/sh\n",
    ]),
  ),
  stat: '#!/bin/sh\ncase "$*" in */sys/fs/cgroup) echo tmpfs ;; *) exec /usr/bin/stat "$@" ;; esac\n',
};

/** An artifact of a DC/OS release that records the configuration of each genconf. */
const artifact = (secondLine: string): string => `#!/bin/bash
${secondLine}
case $1 in
  --version) echo '{"variant": "ee", "version": "2.1.2"}' ;;
  --genconf)
    mkdir genconf/serve
    cat genconf/config.yaml >>configurations
    echo --- >>configurations
    echo 'exit 0' >genconf/serve/dcos_install.sh
    ;;
esac
`;

/** Returns the configuration of each genconf. The last one counts. */
async function configurations(
  secondLine: string,
  changes: Partial<InstallPlan>,
): Promise<readonly Record<string, unknown>[]> {
  await using folder = await scratchFolder();
  await using machines = await startMachines({ roles: ["master"], programs: completeNode });
  const [machine] = machines.machines;
  await machine!.write("run/chronyd.ended", "0");
  await machine!.write("etc/fstab", "");
  for (const file of ["udp", "tcp"]) await machine!.write(`proc/net/${file}`, "");
  const path = join(folder.path, "artifact.sh");
  await writeFile(path, artifact(secondLine));
  const plan = examplePlan(path, { variant: "enterprise", ...changes });
  const work = {
    connections: machines.connections,
    clock: systemClock,
    progress: silentProgress,
    signal: neverAborted,
  };
  await installOn(
    work,
    launchedMachines(exampleCluster(machines.nodes, plan.variant)),
    openInstallation(work, plan, { ...exampleTraits, nodesKeepTime: false }),
  );
  const text = await machine!.read("var/lib/cluster-e2e/installer/configurations");
  return text
    .split("---\n")
    .slice(0, -1)
    .map((document) => Bun.YAML.parse(document) as Record<string, unknown>);
}

const keys = { check_time: false, exhibitor_tls_enabled: false };

describe.skipIf(machinesLack !== undefined)("the configuration of a DC/OS release", () => {
  test("gets the release's keys if the artifact's second line names the layout", async () => {
    const found = await configurations("# variant: ee", { layout: dcosLayout });
    expect(found).toEqual([expect.objectContaining(keys)]);
  });

  // Shows R114.
  test("gets them too if only genconf's output reveals the layout", async () => {
    const found = await configurations("", { layout: undefined });
    expect(found).toHaveLength(2);
    expect(found[0]).not.toHaveProperty("check_time");
    expect(found[1]).toMatchObject({ ...keys, superuser_username: "admin" });
  });

  test("keeps the user's values", async () => {
    const found = await configurations("# variant: ee", {
      layout: dcosLayout,
      configuration: added({ check_time: true }),
    });
    expect(found).toEqual([expect.objectContaining({ ...keys, check_time: true })]);
  });

  test("gets the keys that are missing in the complete configuration of a library's user", async () => {
    const values = { bootstrap_url: "http://10.0.0.9", check_time: true };
    const found = await configurations("# variant: ee", {
      layout: dcosLayout,
      configuration: { kind: "complete", values },
    });
    expect(found).toEqual([{ ...values, exhibitor_tls_enabled: false }]);
  });
});
