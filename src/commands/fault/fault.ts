import type { BackendKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { argument, flag, listArgument, option } from "../../cli/options/option.ts";
import { byRule, choice, count, duration, value } from "../../cli/options/value-types.ts";
import type { ChaosTarget } from "../../cluster/faults/chaos-plan.ts";
import { type FaultKind, faultKinds, faultRows } from "../../platform/faults/fault-kinds.ts";
import { durationRule } from "../../system/amounts.ts";
import { clusterOptions, nodeNames, nodeSelector } from "../options.ts";
import { kindOptions } from "./kind-options.ts";

const actions = [...faultKinds, "random", "list", "heal"] as const;

/** Shared by the command and by `once`, which takes them in one text. */
const readers = async () => import("./chaos-text.ts");

const randomOptions = {
  seed: option(count(0, 2 ** 32 - 1), {
    flag: "--seed",
    summary: "random: the same seed gives the same faults",
    defaultText: "a new one, which is printed",
  }),
  everyMs: option(
    value(async (given): Promise<number> => (await readers()).parseEvery(given)),
    {
      flag: "--every",
      placeholder: "<duration>",
      summary: "random: the time from one fault to the next",
      default: 30_000,
      defaultText: "30s",
    },
  ),
  kinds: option(
    value(async (given): Promise<readonly FaultKind[]> => (await readers()).parseKinds(given)),
    {
      flag: "--kinds",
      placeholder: "<kind,…>",
      summary: "random: the kinds of faults; their options apply to each of them",
      default: ["partition"],
      defaultText: "partition",
    },
  ),
  targets: option(
    value(async (given): Promise<readonly ChaosTarget[]> => (await readers()).parseTargets(given)),
    {
      flag: "--targets",
      placeholder: "<one,minority,majority>",
      summary:
        "random: how many nodes a fault concerns, of the masters or of the others; without majority, the cluster keeps the nodes that it needs",
      default: ["one", "minority"],
      defaultText: "one,minority",
    },
  ),
  recoverMs: option(duration, {
    flag: "--recover",
    placeholder: "<duration>",
    summary: "random: after each fault, every node's check must pass within this time",
  }),
  only: option(
    value(async (given): Promise<readonly number[]> => (await readers()).parseNumbers(given)),
    {
      flag: "--only",
      placeholder: "<number,…>",
      summary: "random: only these faults of the plan, by their numbers",
    },
  ),
  dryRun: flag({ flag: "--dry-run", summary: "random: print the plan, and begin no fault" }),
};

const faultOptions = (kind: BackendKind) => ({
  ...kindOptions(kind),
  ...randomOptions,
  // Which lengths are possible depends on the action.
  durationMs: option(byRule(durationRule), {
    flag: "--for",
    placeholder: "<duration>",
    summary: "After this time the nodes heal the fault by themselves",
    default: 60_000,
    defaultText: "60s",
  }),
  wait: flag({ flag: "--wait", summary: "Return when the fault has been healed; Ctrl-C heals it" }),
});

export const faultCommand = (kind: BackendKind) =>
  defineCommand({
    name: "fault",
    summary: "Begin, list and heal faults of networks, clocks, disks, processes and memory",
    description: `${faultKinds.map((each) => `\`${each}\` ${faultRows[each].summary}`).join("; ")}. The command returns when the fault shows. After the time of --for, the nodes heal the fault by themselves, even if this program or computer has gone; a restart of a node heals its part. Faults may overlap. SSH keeps working, as does the installation. Nodes need nft or iptables for \`partition\`, tc and the kernel's netem for \`network\`.\n\n\`random\` begins one fault after the other for the time of --for, each over before the next one. The plan depends on the seed, the nodes' names and the options only.\n\n\`list\` shows all faults; \`heal\` ends those of these nodes, or all.`,
    positionals: {
      action: argument(choice(actions), {
        name: "ACTION",
        summary: `What to do: ${faultKinds.join(", ")}, random, list or heal`,
        required: true,
      }),
      nodes: listArgument(nodeSelector(kind.machineId), {
        name: "NODE",
        summary:
          "Nodes, as for `run`, or all, masters, agents, public_agents; not for `partition`, `random` and `list`",
        completeWith: nodeNames,
        required: false,
      }),
    },
    options: clusterOptions(kind, faultOptions(kind)),
    examples: [
      {
        words: "fault partition --between agent_0 --and masters",
        summary: "Cut an agent off from all masters",
      },
      {
        words: "fault network agent_1 --delay 200ms --loss 5% --for 5m",
        summary: "Give an agent a slow network for five minutes",
      },
      {
        words: "fault clock master_0 --offset +1h --wait",
        summary: "Set a clock ahead, and wait for the end",
      },
      { words: "fault disk agent_0 --fill /var/lib", summary: "Fill a disk" },
      {
        words: "fault process master_0 --unit etcd --signal kill",
        summary: "Kill a service, and see whether it comes back by itself",
      },
      {
        words: "fault pressure agent_0 --cpu 90% --memory 80%",
        summary: "Use up most of an agent's processors and memory",
      },
      { words: "fault partition --shape ring", summary: "Let each node reach two others only" },
      {
        words: "fault random --seed 7 --for 10m",
        summary: "Begin faults at random, and the same ones again",
      },
      { words: "fault heal", summary: "Heal all faults of the cluster `default`" },
    ],
    check: async (given, problems) =>
      (await import("./check-fault.ts")).checkFault(given, problems),
    run: async (input, context) => {
      const { executeFault } = await import("./execute-fault.ts");
      await executeFault(kind, input, context);
    },
  });
