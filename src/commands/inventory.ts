import { join } from "node:path";
import { assertKeyIsHere, sshConfig } from "../cluster/connections.ts";
import { type LocalRun, addressOf, localVariables } from "../cluster/run/run-local.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  isReachable,
  nodeGroups,
  nodeReference,
  nodeHostname,
} from "../model/cluster-record.ts";
import { proxyCommand, quotedPath } from "../ssh/openssh-files.ts";
import { quote } from "../ssh/shell-text.ts";
import { creationFiles } from "../store/creation-folder.ts";
import { writePrivateFile } from "../system/files/private-file.ts";

/** The forms in which other programs read the nodes of a cluster. All name only nodes that run. */
export const inventories = {
  addresses: (cluster: ClusterRecord): string =>
    running(cluster)
      .map((node) => addressOf(node) ?? nodeReference(node))
      .join("\n"),
  hosts: hostsLines,
  ansible: ansibleInventory,
} as const;

const running = ({ nodes }: ClusterRecord): readonly NodeRecord[] => nodes.filter(isReachable);

/** Lines for `/etc/hosts`. */
function hostsLines(cluster: ClusterRecord): string {
  const lines = running(cluster).map((node) => {
    const name = nodeHostname(node);
    const address = addressOf(node);
    return address === undefined
      ? `# ${name}: this computer reaches it only by ssh`
      : `${address} ${name}.${cluster.id} ${name}`;
  });
  return lines.join("\n");
}

/** An inventory in YAML, whose connections check the pinned host keys. Throws `key-missing`. */
async function ansibleInventory(cluster: ClusterRecord): Promise<string> {
  await assertKeyIsHere(cluster);
  const files = creationFiles(cluster.directory);
  const options = [
    `IdentityFile=${quotedPath(files.privateKey)}`,
    "IdentitiesOnly=yes",
    "IdentityAgent=none",
    "HostKeyAlgorithms=ssh-ed25519",
    "StrictHostKeyChecking=yes",
    `UserKnownHostsFile=${quotedPath(files.knownHosts)}`,
    "GlobalKnownHostsFile=/dev/null",
    "UpdateHostKeys=no",
  ];
  // Ansible reads the user's configuration of ssh, whose ProxyJump for all hosts would lead elsewhere.
  const argsVia = (proxy: string): string =>
    yamlText(quote([...options, `ProxyCommand=${proxy}`].flatMap((each) => ["-o", each])));
  const hostLines = (node: NodeRecord): readonly string[] => [
    `        ${yamlText(nodeReference(node))}:`,
    ...Object.entries({
      ansible_host: yamlText(node.ssh.host),
      ansible_port: String(node.ssh.port),
      ansible_user: yamlText(node.ssh.user),
      ...(node.ssh.user !== "root" && { ansible_become: "true" }),
      ...(node.ssh.through !== undefined && {
        ansible_ssh_common_args: argsVia(proxyCommand(node.ssh.through)),
      }),
      private_address: yamlText(node.privateAddress ?? ""),
    }).map(([name, value]) => `          ${name}: ${value}`),
  ];
  const groupLines = Object.entries(nodeGroups).flatMap(([group, role]) =>
    role === undefined
      ? []
      : [
          `    ${group}:`,
          "      hosts:",
          ...running(cluster)
            .filter((node) => node.role === role)
            .flatMap(hostLines),
        ],
  );
  return [
    "all:",
    "  vars:",
    `    cluster_id: ${yamlText(cluster.id)}`,
    `    ansible_ssh_common_args: ${argsVia("none")}`,
    "  children:",
    ...groupLines,
  ].join("\n");
}

/** JSON is YAML. Ansible would evaluate braces in a value as a template. */
const yamlText = (text: string): string =>
  `${/\{[{%#]/.test(text) ? "!unsafe " : ""}${JSON.stringify(text)}`;

/** Lines for `eval`, which set what `run --local` sets. The files that they name stay beside the cluster's key. */
export async function environmentLines(
  cluster: ClusterRecord,
  { program, json, scope }: Pick<LocalRun, "program" | "json" | "scope">,
): Promise<string> {
  const configFile = creationFiles(cluster.directory).sshConfig;
  const jsonFile = join(cluster.directory, "cluster.json");
  await writePrivateFile(configFile, await sshConfig(cluster));
  await writePrivateFile(jsonFile, json);
  const variables = {
    ...localVariables(cluster, scope),
    CLUSTER_PROGRAM: program,
    CLUSTER_SSH_CONFIG: configFile,
    CLUSTER_JSON: jsonFile,
  };
  return Object.entries(variables)
    .map(([name, value]) => `export ${name}=${quote([value])}`)
    .join("\n");
}
