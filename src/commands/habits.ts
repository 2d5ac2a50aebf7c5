import type { Habits } from "../cli/options/option.ts";

/** The only table of words that the programs accept, or explain, besides their own commands and options. */
export const habitsOf = (program: string): Habits => ({
  words: new Map([
    ["help", ["--help"]],
    ["version", ["--version"]],
    ["-V", ["--version"]],
    ["ls", ["list"]],
    ["ps", ["list"]],
    ["rm", ["destroy", "delete", "remove"]],
    ["remove", ["destroy", "delete"]],
    ["delete", ["destroy", "remove"]],
  ]),
  options: new Map([
    ["-o", "--output"],
    ["--json", "--output=json"],
  ]),
  argument: "--cluster-id",
  meant: new Map([
    ["--name", ["--cluster-id"]],
    ["--id", ["--cluster-id"]],
    ["-n", ["--node", "--cluster-id"]],
    ["--nodes", ["--node", "--masters"]],
    ["--node-image", ["--image"]],
    ["--volume", ["--custom-volume"]],
    ["-e", ["--env"]],
    ["--force", ["--yes"]],
    ["-f", ["--yes"]],
  ]),
  hints: new Map([
    ...forEach(
      "ssh shell",
      `type ${program} run bash for a shell on a master, or ${program} run --node agent_0 bash`,
    ),
    ...forEach("exec top", `type ${program} run COMMAND`),
    ...forEach("up apply", `type ${program} create PLATFORM`),
    ...forEach("restart reboot", `type ${program} node restart NODE`),
    ...forEach(
      "port ports port-forward tunnel",
      `type ${program} forward NODE PORT to reach a port of a node`,
    ),
    ...forEach(
      "status get describe ip",
      `type ${program} list for all clusters, or ${program} inspect for the nodes of one`,
    ),
    ["list -c", `-c: list shows all clusters; for one, type ${program} inspect -c CLUSTER_ID`],
    [
      "list --cluster-id",
      `--cluster-id: list shows all clusters; for one, type ${program} inspect -c CLUSTER_ID`,
    ],
    ...["-r", "-R", "--recursive"].map(
      (flag) => [`cp ${flag}`, `${flag}: not needed, since cp copies folders by itself`] as const,
    ),
    ["create -p", `-p: not needed; to reach a port of a node, type ${program} forward NODE PORT`],
    ["run -i", "-it: not needed, since run passes the terminal through by itself"],
    ["run -t", "-it: not needed, since run passes the terminal through by itself"],
  ]),
});

const forEach = (words: string, hint: string) =>
  words.split(" ").map((word) => [word, hint] as const);
