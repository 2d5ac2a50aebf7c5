/** Faults that meet the upgrade of a cluster that is there. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import type { Fault, Struck } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { answering, failed } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const words = ["upgrade", "-c", "faulty", "release.sh"] as const;

/** Nodes with DC/OS 0.9, whose upgrade is in this state. */
const nodesSay = (state: string): readonly ScriptedAnswer[] => [
  { pattern: "e2e-upgrade-lock", stdout: "held\n" },
  {
    pattern: "e2e-node-version",
    stdout: `layout=dcos\nversion={"version": "0.9"}\n${state}\n`,
    readsStdin: true,
  },
  { pattern: "head -c .* .*config\\.yaml", stdout: "bootstrap_url: http://example.org\n" },
  { pattern: "--generate-node-upgrade-script", stdout: "http://example.org/upgrade/node.sh\n" },
];

const upgrading =
  (state: string) =>
  async (world: CloudWorld): Promise<Struck> => {
    await writeFile(join(world.folder, "release.sh"), "#!/bin/bash\n# variant: ee\n");
    return answering(...nodesSay(state))(world);
  };

const kept = { keepsCluster: true };

export const upgradeFaults: readonly CloudFault[] = [
  {
    name: "an upgrade script is killed in the middle",
    place: "machine",
    needsCluster: true,
    seconds: 10,
    strike: upgrading("status=running\nunit=failed\nlog=Upgrading"),
    act: async (world) => world.run(words),
    expected: {
      ...failed("upgrade-failed", "The upgrade failed on master_0: its upgrade was interrupted."),
      says: [
        "its upgrade was interrupted",
        "Version 0.9: master_0, agent_0.",
        "run the same command again",
      ],
      ...kept,
    },
  },
  {
    name: "another upgrade of the cluster is running",
    place: "machine",
    needsCluster: true,
    seconds: 10,
    strike: async (world) => {
      await upgrading("")(world);
      return answering({ pattern: "e2e-upgrade-lock", status: 75, stdout: "since 12:34:56 UTC\n" })(
        world,
      );
    },
    act: async (world) => world.run(words),
    expected: { ...failed("cluster-busy", "is running, since 12:34:56 UTC"), ...kept },
  },
  {
    name: "an upgrade that another run has left never ends",
    place: "machine",
    needsCluster: true,
    seconds: 25,
    strike: upgrading("status=running\nunit=active"),
    act: async (world) => world.run([...words, "--timeout", "20s"]),
    expected: {
      ...failed("deadline-passed", "master_0: its upgrade script is running", 4),
      ...kept,
    },
  },
  {
    name: "a node is lost during its upgrade",
    place: "machine",
    needsCluster: true,
    seconds: 30,
    strike: upgrading("status=running\nunit=active"),
    act: async (world) => {
      const running = world.start(words);
      await running.said("its upgrade script is running");
      await world.terminate([world.cloud.instances()[0]!.instanceId]);
      const ended = await running.ended;
      // The other node stays, as it should; what is left of the cluster ends with it.
      await world.endCluster();
      return ended;
    },
    expected: {
      ...failed("machine-failed", /Not all machines run: (?:master|agent)_0/),
      ...kept,
      withinMs: 60_000,
    },
  },
];
