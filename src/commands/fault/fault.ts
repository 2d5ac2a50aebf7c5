import type { BackendKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { argument, flag, listArgument, option } from "../../cli/options/option.ts";
import { choice, duration, text, value } from "../../cli/options/value-types.ts";
import { clusterOptions, nodeNames, nodeSelector } from "../options.ts";

const actions = ["partition", "network", "clock", "disk", "list", "heal"] as const;

const partitionOptions = ({ machineId }: BackendKind) => ({
  between: option(nodeSelector(machineId), {
    flag: "--between",
    placeholder: "<node>",
    summary: "partition: the nodes on one side",
    completeWith: nodeNames,
    repeatable: true,
  }),
  and: option(nodeSelector(machineId), {
    flag: "--and",
    placeholder: "<node>",
    summary: "partition: the nodes on the other side",
    defaultText: "all other nodes",
    completeWith: nodeNames,
    repeatable: true,
  }),
  oneWay: flag({
    flag: "--one-way",
    summary: "partition: drop only what goes from --between to --and",
  }),
});

const faultOptions = (kind: BackendKind) => ({
  ...partitionOptions(kind),
  delayMs: option(duration, {
    flag: "--delay",
    placeholder: "<duration>",
    summary: "network: how much later packets leave, such as 200ms",
  }),
  lossPercent: option(
    value(async (given) => (await import("./fault-values.ts")).parseLoss(given)),
    {
      flag: "--loss",
      placeholder: "<percent>",
      summary: "network: how many packets get lost, such as 5%",
    },
  ),
  rateKbits: option(
    value(async (given) => (await import("./fault-values.ts")).parseRate(given)),
    {
      flag: "--rate",
      summary: "network: how much the node may send per second, such as 512kbit, 1mbit or 1gbit",
    },
  ),
  offsetMs: option(
    value(async (given) => (await import("./fault-values.ts")).parseOffset(given)),
    {
      flag: "--offset",
      summary: "clock: how far it is ahead (+1h) or behind (--offset=-30s)",
    },
  ),
  folder: option(text, {
    flag: "--fill",
    placeholder: "<folder>",
    summary: "disk: a folder of the file system to fill",
  }),
  leaveBytes: option(
    value(async (given) => (await import("./fault-values.ts")).parseSize(given)),
    {
      flag: "--leave",
      placeholder: "<size>",
      summary: "disk: how much stays free, such as 0, 64K, 10M or 1G",
      defaultText: "0",
    },
  ),
  durationMs: option(duration, {
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
    summary: "Begin, list and heal faults of networks, clocks and disks",
    description:
      "`partition` drops packets between nodes; `network` delays or loses what a node sends, or limits how much; `clock` sets a clock ahead or back; `disk` fills a file system. The command returns when the fault shows. After the time of --for, the nodes heal the fault by themselves, even if this program or computer has gone; a restart of a node heals its part. Faults may overlap. SSH keeps working, as does the installation. Nodes need nft or iptables for `partition`, tc and the kernel's netem for `network`.\n\n`list` shows all faults; `heal` ends those of these nodes, or all.",
    positionals: {
      action: argument(choice(actions), {
        name: "ACTION",
        summary: "What to do: partition, network, clock, disk, list or heal",
        required: true,
      }),
      nodes: listArgument(nodeSelector(kind.machineId), {
        name: "NODE",
        summary:
          "Nodes, as for `run`, or all, masters, agents, public_agents; not for `partition` and `list`",
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
      { words: "fault heal", summary: "Heal all faults of the cluster `default`" },
    ],
    check: async (given, problems) =>
      (await import("./fault-values.ts")).checkFault(given, problems),
    run: async (input, context) => {
      const { executeFault } = await import("./execute-fault.ts");
      await executeFault(kind, input, context);
    },
  });
