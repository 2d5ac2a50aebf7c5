/** What a DC/OS release asks of its nodes, read from its public source. */

/** `FILE:LINE` in the release's source. */
type Source = string;

export interface ReleaseFacts {
  /** How preflight finds Docker's version: the last `Version:` line of `docker version`, or `docker version --format`. */
  readonly dockerVersion: { readonly read: "last-line" | "format"; readonly source: Source };
  /** Programs that preflight looks for, Docker and systemctl beside them. */
  readonly programs: { readonly names: readonly string[]; readonly source: Source };
  /** Whether preflight wants the group `nogroup`. */
  readonly nogroup: { readonly isChecked: boolean; readonly source: Source };
  /** Ports that preflight wants free, by role. */
  readonly ports: {
    readonly master: readonly number[];
    readonly agent: readonly number[];
    readonly source: Source;
  };
  /** How a port is looked for in /proc/net, where numbers have capital letters: lower case finds none with letters. */
  readonly portFormat: { readonly format: string; readonly source: Source };
  /** Whether `dcos-version.json` holds `dcos-variant`. */
  readonly versionFileVariant: { readonly isThere: boolean; readonly source: Source };
  /** What checks a node after its start. */
  readonly nodeCheck: { readonly command: readonly string[]; readonly source: Source };
  /** The default of `check_time`, and what doesn't start with an unsynchronized clock then. */
  readonly timeCheck: {
    readonly default: boolean;
    readonly services: readonly string[];
    readonly source: Source;
  };
  /** The port of the certificate authority that genconf leaves running on its machine, where it does. */
  readonly bootstrapCa: { readonly port: number; readonly source: Source } | undefined;
  /** How a running node is upgraded: the generator's option, the line before the script's URL, the script's flags, and whether it checks the node. */
  readonly upgrade: {
    readonly option: string;
    readonly linePrefix: string;
    readonly flags: readonly string[];
    readonly isChecked: boolean;
    readonly source: Source;
  };
  /** The Python of the release's own library. */
  readonly python: { readonly name: string; readonly source: Source };
}

/** A release's files: undefined where there is no such file. */
export type ReadFile = (path: string) => string | undefined;

const installScript = "gen/build_deploy/bash.py";
const generatorScript = "gen/build_deploy/bash/dcos_generate_config.sh.in";
const versionFile = "gen/dcos-metadata.yaml";
const defaults = "gen/calc.py";
const commandLine = "dcos_installer/cli.py";
const upgradeScript = "dcos_installer/upgrade.py";
const pythonBuild = "packages/bootstrap/build";
const timeCheckers = {
  navstar: "packages/navstar/extra/dcos-navstar.service",
  "dcos-net": "packages/dcos-net/extra/dcos-net.service",
  exhibitor: "packages/exhibitor/extra/dcos-exhibitor.service",
  metronome: "packages/metronome/build",
};
const nodeChecks = [
  { package: "dcos-check-runner", command: ["dcos-check-runner", "check", "node-poststart"] },
  { package: "dcos-diagnostics", command: ["dcos-diagnostics", "check", "node-poststart"] },
  { package: "3dt", command: ["3dt", "--diag"] },
];

/** Throws where the source has another form than all known releases have. */
export function readReleaseFacts(read: ReadFile): ReleaseFacts {
  const script = openFile(read, installScript);
  const master = portList(script, 0);
  const agent = portList(script, 1);
  const format = script.find(/&& docker version --format/);
  const version = format ?? script.need(/docker version 2>.{0,200}awk/);
  const programs = script.all(/^ {4}check ([a-z-]+)$/);
  const nogroup = script.find(/getent group nogroup/);
  const variant = openFile(read, versionFile).find(/"dcos-variant"/);
  const time = openFile(read, defaults).need(/'check_time': '(true|false)'/);
  const generator = openFile(read, generatorScript);
  const authority = generator.find(/serve --address :(\d+)/);
  const python = openFile(read, pythonBuild).need(/(python3\.\d+)\/site-packages/);
  return {
    dockerVersion: { read: format === undefined ? "last-line" : "format", source: version.source },
    programs: {
      names: programs.map(({ match }) => match[1] ?? ""),
      source: programs[0]?.source ?? installScript,
    },
    nogroup: { isChecked: nogroup !== undefined, source: nogroup?.source ?? installScript },
    ports: { master: master.ports, agent: agent.ports, source: master.source },
    portFormat: formatOfPorts(script),
    versionFileVariant: { isThere: variant !== undefined, source: variant?.source ?? versionFile },
    nodeCheck: nodeCheckOf(read),
    timeCheck: {
      default: time.match[1] === "true",
      services: timeCheckersOf(read),
      source: time.source,
    },
    bootstrapCa: authority && { port: Number(authority.match[1]), source: authority.source },
    upgrade: upgradeOf(read),
    python: { name: python.match[1] ?? "", source: python.source },
  };
}

interface Found {
  readonly match: RegExpExecArray;
  readonly source: Source;
}

interface OpenFile {
  readonly lines: readonly string[];
  all(pattern: RegExp): readonly Found[];
  find(pattern: RegExp): Found | undefined;
  need(pattern: RegExp): Found;
}

function openFile(read: ReadFile, path: string): OpenFile {
  const text = read(path);
  if (text === undefined) throw new Error(`there is no ${path}`);
  const lines = text.split("\n");
  const all = (pattern: RegExp): readonly Found[] =>
    lines.flatMap((line, index) => {
      const match = pattern.exec(line);
      return match === null ? [] : [{ match, source: `${path}:${index + 1}` }];
    });
  const find = (pattern: RegExp): Found | undefined => all(pattern)[0];
  const need = (pattern: RegExp): Found => {
    const found = find(pattern);
    if (found === undefined) throw new Error(`nothing in ${path} is like ${pattern.source}`);
    return found;
  };
  return { lines, all, find, need };
}

/** The first list of ports is the masters', the second the agents'. */
function portList(
  script: OpenFile,
  which: 0 | 1,
): { readonly ports: readonly number[]; readonly source: Source } {
  const found = script.all(/for service in/)[which];
  if (found === undefined) throw new Error(`${installScript} has no such list of ports`);
  const start = Number(found.source.split(":")[1]);
  const rest = script.lines.slice(start);
  const ports = rest
    .slice(
      0,
      rest.findIndex((line) => line.trim() === "do"),
    )
    .map((line) => Number.parseInt(line.trim().slice(1), 10));
  return { ports, source: found.source };
}

function formatOfPorts(script: OpenFile): ReleaseFacts["portFormat"] {
  const { match, source } = script.need(/printf "(%04[xX])" \$PORT/);
  return { format: match[1] ?? "", source };
}

function nodeCheckOf(read: ReadFile): ReleaseFacts["nodeCheck"] {
  for (const check of nodeChecks) {
    const source = `packages/${check.package}/build`;
    if (read(source) !== undefined) return { command: check.command, source: `${source}:1` };
  }
  throw new Error("the release has no program that checks a node");
}

function upgradeOf(read: ReadFile): ReleaseFacts["upgrade"] {
  const script = openFile(read, upgradeScript);
  const option = openFile(read, commandLine).need(/^ +'(--generate-node-upgrade-script)',$/);
  const line = script.need(
    /print\("(Node upgrade script URL: )" \+ bootstrap_url \+ upgrade_script_path/,
  );
  const flags = ["--skip-checks", "--verbose"].filter((flag) =>
    script.lines.some((text) => text.includes(flag)),
  );
  return {
    option: option.match[1] ?? "",
    linePrefix: line.match[1] ?? "",
    flags,
    isChecked: script.find(/check node-poststart|check_type in "node-poststart/) !== undefined,
    source: line.source,
  };
}

const timeCheckersOf = (read: ReadFile): readonly string[] =>
  Object.entries(timeCheckers)
    .filter(([, path]) => /^ExecStartPre=.*check-time$/m.test(read(path) ?? ""))
    .map(([name]) => name);
