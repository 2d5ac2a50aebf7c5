/**
 * Every option that an error, a note or a check names below the commands. The names are those of the library's properties, where it has
 * them.
 */
export type OptionName = (typeof optionNames)[number];

export const optionNames = [
  "adminCidrs",
  "agents",
  "artifactSha256",
  "clusterId",
  "copyToMaster",
  "customTags",
  "customVolumes",
  "diskSize",
  "engine",
  "extraConfig",
  "genconfDir",
  "image",
  "imageSha256",
  "instanceType",
  "keepOnFailure",
  "licenseKey",
  "linuxDistribution",
  "memory",
  "node",
  "nodeImage",
  "noTestEnv",
  "publicAgents",
  "region",
  "sshUser",
  "subnetId",
  "superuserPassword",
  "superuserUsername",
  "timeout",
  "variant",
  "workspaceDir",
] as const;

/**
 * An option as texts name it: in backquotes, so that the command line can write its flag instead (cli/flag-names.ts). Users of the library read
 * it as it is. `optionName("agents", "0")` names it with a value.
 */
export const optionName = (name: OptionName, value?: string): string =>
  value === undefined ? `\`${name}\`` : `\`${name} ${value}\``;
