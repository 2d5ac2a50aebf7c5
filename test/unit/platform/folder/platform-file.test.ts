import { describe, expect, test } from "bun:test";
import { outside, unmarked } from "../../../../src/outside-text.ts";
import {
  type PlatformFacts,
  parsePlatformFile,
  parsePlatformHead,
  platformHead,
} from "../../../../src/platform/folder/platform-file.ts";
import { isMapping } from "../../../../src/model/reader.ts";
import { leastFacts } from "../../../support/platform-facts.ts";
import { parseConfiguration } from "../../../../src/platform/configuration/configuration-file.ts";

const parse = (text: string) => parsePlatformFile(text, "etcd/platform.yaml");
const smallest = 'name: etcd\nversion: "3.5"\n';

const full = `
name: etcd
version: "3.5"
description: A store of keys and values
nodes:
  masters: { default: 3, min: 1, max: 9 }
  agents: { default: 0, max: 0 }
packages: { apt: [etcd-server, g++], dnf: [etcd] }
ports: [2379, 2380]
web: { port: 443, path: /ui/, scheme: https, certificate: /etc/etcd/ca.pem }
checkTimeout: 1m30s
conditions: [docker, cgroups-1, dns-port-free, clock-synchronized]
kernel_modules: [ip_vs]
logs:
  units: [etcd, "etcd@1.service"]
  files: [/var/log/etcd.log]
  errors: ['"level":"fatal"', panic*raft, "fatal: "]
  allowed: [apply request took too long]
secrets: [/etc/munge/munge.key]
`;

const fullFacts: PlatformFacts = {
  name: "etcd",
  version: "3.5",
  description: "A store of keys and values",
  nodes: {
    master: { default: 3, min: 1, max: 9 },
    agent: { default: 0, max: 0 },
    public_agent: {},
  },
  packages: { apt: ["etcd-server", "g++"], dnf: ["etcd"] },
  ports: [2379, 2380],
  web: { port: 443, path: "/ui/", scheme: "https", certificate: "/etc/etcd/ca.pem" },
  checkSeconds: 90,
  conditions: ["docker", "cgroups-1", "dns-port-free", "clock-synchronized"],
  kernelModules: ["ip_vs"],
  logs: {
    units: ["etcd", "etcd@1.service"],
    files: ["/var/log/etcd.log"],
    errors: ['"level":"fatal"', "panic*raft", "fatal: "],
    allowed: ["apply request took too long"],
  },
  secrets: ["/etc/munge/munge.key"],
};

const emptyFacts: PlatformFacts = { ...leastFacts, name: "etcd", version: "3.5" };

describe("platform.yaml", () => {
  test.each([
    ["everything", full, fullFacts],
    [
      "values that are as long and as large as can be",
      `name: etcd\nversion: ${"v".repeat(50)}\nnodes: { agents: { max: 1000 } }\nports: [1, 65535]\n`,
      {
        ...emptyFacts,
        version: "v".repeat(50),
        nodes: { ...emptyFacts.nodes, agent: { max: 1000 } },
        ports: [1, 65_535],
      },
    ],
    ["the least", smallest, emptyFacts],
    [
      "a platform of one master",
      `${smallest}nodes: { masters: { max: 1 } }`,
      { ...emptyFacts, nodes: { ...emptyFacts.nodes, master: { max: 1 } } },
    ],
    [
      "the longest limit for a check",
      `${smallest}checkTimeout: 10m`,
      { ...emptyFacts, checkSeconds: 600 },
    ],
    [
      "the shortest limit for a check",
      `${smallest}checkTimeout: 1s`,
      { ...emptyFacts, checkSeconds: 1 },
    ],
    [
      "a web UI's defaults",
      `${smallest}web: { port: 80 }`,
      {
        ...emptyFacts,
        web: { port: 80, path: "/", scheme: "http", certificate: undefined } as const,
      },
    ],
  ])("%s is read, and read back from an artifact's head", async (_, text, facts) => {
    expect(await parse(text)).toEqual({ value: facts });
    const head = platformHead(facts);
    expect(head).toMatch(/^\{[\x20-\x7e]*\}$/);
    expect(parsePlatformHead(head)).toEqual({ value: facts });
  });

  test("the head is the same whatever the order and the form of the file", async () => {
    const mixed = `version: "3.5"\nweb:\n  scheme: http\n  port: 80\nname: etcd\n`;
    const [one, other] = await Promise.all([
      parse(mixed),
      parse(`{"name": "etcd", "version": "3.5", "web": {"port": 80}}`),
    ]);
    expect(platformHead(one.value!)).toBe(platformHead(other.value!));
  });

  test("any printable version survives", async () => {
    const facts = { ...emptyFacts, version: "é {1}'\"\\ 日本 🙂" };
    expect(parsePlatformHead(platformHead(facts))).toEqual({ value: facts });
  });
});

const webKeys = "port, path, scheme, certificate";
const limit = "a duration of 1s to 10m in whole seconds, such as 90s";
const path = "an absolute path of letters, digits and ._+@:,=~-";

/** What is added to the smallest file (or, behind `=`, what is the whole file), and the only problem. */
const mistakes: readonly (readonly [text: string, problem: string])[] = [
  ['=version: "3.5"', "name: is missing"],
  ["=name: etcd", "version: is missing"],
  [
    '=name: Etcd\nversion: "1"',
    'name: "Etcd" is not 1 to 40 lower-case letters, digits and hyphens that begin with a letter',
  ],
  ['=name: 5\nversion: "1"', "name: must be a text, not 5; put it in quotes"],
  ["=name: etcd\nversion: 3.10", "version: must be a text, not 3.1; put it in quotes"],
  ['=name: etcd\nversion: ""', 'version: "" is not one printable line of 1 to 50 characters'],
  [
    '=name: etcd\nversion: "a\\nb"',
    'version: "a\\nb" is not one printable line of 1 to 50 characters',
  ],
  ["=name: etcd\nversion: [1]", "version: must be a text, not a list"],
  [
    "colour: red",
    'unknown key "colour"; the keys are name, version, description, nodes, packages, ports, web, checkTimeout, conditions, kernel_modules, logs, secrets',
  ],
  [
    `description: "${"x".repeat(101)}"`,
    `description: "${"x".repeat(100)}…" is not one printable line of 1 to 100 characters`,
  ],
  ["description: ' x'", 'description: " x" is not one printable line of 1 to 100 characters'],
  ["description: true", "description: must be a text, not true; put it in quotes"],
  ["nodes: 3", "nodes: must be a mapping (key: value), not 3"],
  [
    "nodes: { master: {} }",
    'nodes: unknown key "master"; the keys are masters, agents, public_agents; did you mean masters?',
  ],
  ["nodes: { masters: 3 }", "nodes.masters: must be a mapping (key: value), not 3"],
  [
    "nodes: { masters: { minimum: 1 } }",
    'nodes.masters: unknown key "minimum"; the keys are default, min, max',
  ],
  ["nodes: { masters: { min: 0 } }", "nodes.masters.min: 0 is not a whole number from 1 to 1000"],
  [
    "nodes: { agents: { default: 1.5 } }",
    "nodes.agents.default: 1.5 is not a whole number from 0 to 1000",
  ],
  [
    "nodes: { agents: { max: 10000000000000000000000 } }",
    "nodes.agents.max: 10000000000000000000… is not a whole number from 0 to 1000",
  ],
  ["nodes: { agents: { min: 3, max: 2 } }", "nodes.agents: min (3) is larger than max (2)"],
  ["nodes: { agents: { default: 3, max: 2 } }", "nodes.agents: default (3) is larger than max (2)"],
  [
    "nodes: { agents: { default: 1, min: 2 } }",
    "nodes.agents: default (1) is smaller than min (2)",
  ],
  ["packages: [etcd]", "packages: must be a mapping (key: value), not a list"],
  ["packages: { yum: [etcd] }", 'packages: unknown key "yum"; the keys are apt, dnf'],
  ["packages: { apt: etcd }", 'packages.apt: must be a list, not "etcd"'],
  ["packages: { apt: [-y] }", 'packages.apt: "-y" is not the name of a package'],
  ["packages: { apt: ['a b'] }", 'packages.apt: "a b" is not the name of a package'],
  ["packages: { dnf: [etcd, etcd] }", 'packages.dnf: "etcd" is listed twice'],
  ["ports: 2379", "ports: must be a list, not 2379"],
  ["ports: ['2379']", 'ports: "2379" is not a whole number from 1 to 65535'],
  ["ports: [0]", "ports: 0 is not a whole number from 1 to 65535"],
  ["ports: [65536]", "ports: 65536 is not a whole number from 1 to 65535"],
  ["ports: [18080]", "ports: 18080 is the port of the installer's server"],
  ["ports: [22]", "ports: 22 is the port of SSH, which is always open"],
  ["ports: [80]\nweb: { port: 80 }", "ports: 80 is the port of the web UI, which is open anyway"],
  [
    `ports: [${Array.from({ length: 101 }, (_, index) => index + 1000).join(",")}]`,
    "ports: has 101 entries; at most 100 are allowed",
  ],
  ["web:", "web: must be a mapping (key: value), not nothing"],
  ["web: {}", "web.port: is missing"],
  ["web: { port: 80, host: x }", `web: unknown key "host"; the keys are ${webKeys}`],
  ["web: { port: 18080 }", "web.port: 18080 is the port of the installer's server"],
  [
    "web: { port: 80, path: ui }",
    'web.path: "ui" is not a path that begins with one / and has letters, digits and ._~%/-',
  ],
  [
    "web: { port: 80, path: //evil.example }",
    'web.path: "//evil.example" is not a path that begins with one / and has letters, digits and ._~%/-',
  ],
  ["web: { port: 80, scheme: ftp }", 'web.scheme: "ftp" is not http or https'],
  [
    "web: { port: 443, scheme: https }",
    "web.certificate: is missing; https needs the file of the certificate's authority",
  ],
  ["web: { port: 80, certificate: /x }", "web.certificate: only https has one"],
  ["web: { port: 443, scheme: https, certificate: x }", `web.certificate: "x" is not ${path}`],
  ...["60", "0s", "500ms", "1500ms", "601s", "11m", "1d", "-5s", "''", "ten"].map(
    (text) =>
      [
        `checkTimeout: ${text}`,
        `checkTimeout: "${text === "''" ? "" : text}" is not ${limit}`,
      ] as const,
  ),
  ["checkTimeout: [9s]", "checkTimeout: must be a text, not a list"],
  [
    "conditions: [podman]",
    'conditions: "podman" is not one of docker, cgroups-1, dns-port-free, clock-synchronized',
  ],
  ["kernel_modules: ['ip vs']", 'kernel_modules: "ip vs" is not the name of a kernel module'],
  ["logs: /var/log/x", 'logs: must be a mapping (key: value), not "/var/log/x"'],
  ["logs: { units: [a/b] }", 'logs.units: "a/b" is not the name of a systemd unit'],
  [
    "logs: { errors: ['*a*bc'] }",
    'logs.errors: "*a*bc" is not a pattern of at most 200 characters, in which at least 3 that follow each other are no *',
  ],
  ["logs: { files: [log] }", `logs.files: "log" is not ${path}`],
  ["secrets: [/etc/../x]", `secrets: "/etc/../x" is not ${path}`],
  ["secrets: ['/etc/a b']", `secrets: "/etc/a b" is not ${path}`],
];

describe("mistakes", () => {
  test("there are enough, and all are different", () => {
    expect(new Set(mistakes.map(([, problem]) => problem)).size).toBe(mistakes.length);
    expect(mistakes.length).toBeGreaterThan(30);
  });

  test.each([...mistakes])("%s", async (text, problem) => {
    const whole = text.startsWith("=") ? text.slice(1) : smallest + text;
    const found = await parse(whole);
    expect(found.problems?.map(unmarked)).toEqual([`etcd/platform.yaml: ${problem}`]);
  });

  test.each(mistakes.filter(([text]) => !/10{20}|3\.10/.test(text)))(
    "in an artifact's head: %s",
    async (text, problem) => {
      const whole = text.startsWith("=") ? text.slice(1) : smallest + text;
      const { value } = await parseConfiguration(whole, "x");
      if (!isMapping(value)) throw new Error("not a mapping");
      expect(parsePlatformHead(JSON.stringify(value)).problems?.map(unmarked)).toEqual([problem]);
    },
  );

  test.each([
    ["name: [", /^etcd\/platform\.yaml:1:\d+: /],
    ["name: etcd\nname: slurm", /^etcd\/platform\.yaml:2:1: Map keys must be unique$/],
    ["- etcd", /^etcd\/platform\.yaml: the top level must be a mapping/],
    [`description: "${"x".repeat(70_000)}"`, /^etcd\/platform\.yaml: it is larger than 64 KiB\.$/],
    [
      `${smallest}packages: { apt: [${Array.from({ length: 200 }, (_, index) => `p${index}${"x".repeat(90)}`).join(",")}] }`,
      /has more than 12 KiB/,
    ],
  ])("a file that cannot be read: %#", async (text, problem) => {
    const { problems } = await parse(text);
    expect(problems).toHaveLength(1);
    expect(unmarked(problems![0]!)).toMatch(problem);
  });

  test.each([
    ["x"],
    [""],
    ['{"name": "etcd"'],
    ["[".repeat(1_000)],
    [platformHead(emptyFacts).padEnd(13_000)],
  ])("a head that cannot be read: %#", (line) => {
    expect(parsePlatformHead(line).problems).toHaveLength(1);
  });

  test.each(["2m", "1m30s", "90000ms"])(
    "a head whose limit for a check no node could read is refused: %s",
    (written) => {
      const line = platformHead({ ...emptyFacts, checkSeconds: 90 }).replace(
        '"90s"',
        JSON.stringify(written),
      );
      expect(line).toContain(written);
      expect(parsePlatformHead(line).problems?.map(unmarked)).toEqual([
        expect.stringMatching(/^checkTimeout: must be written as "\d+s" here$/),
      ]);
    },
  );

  test("a file that is nested too deeply says so, and nothing of the parser's stack", async () => {
    const { problems } = await parse(`name: ${"[".repeat(20_000)}${"]".repeat(20_000)}`);
    expect(problems!.length).toBeLessThan(3);
    for (const each of problems!)
      expect(unmarked(each)).toMatch(/^etcd\/platform\.yaml:1:\d+: this is nested too deeply$/);
  });

  test("all are reported at once, up to 50", async () => {
    const { problems } = await parse("name: E\nports: [0]\nweb: { port: x }\ncolour: red\nlogs: 1");
    expect(problems).toHaveLength(6);
    const many = async (length: number) =>
      (
        await parse(Array.from({ length }, (_, index) => `key${index}: 1`).join("\n"))
      ).problems?.slice(49);
    expect(await many(48)).toEqual([expect.stringContaining("version: is missing")]);
    expect(await many(49)).toEqual([
      expect.any(String),
      expect.stringMatching(/: and 1 more problem$/),
    ]);
    expect(await many(100)).toEqual([
      expect.any(String),
      expect.stringMatching(/: and 52 more problems$/),
    ]);
  });

  test("what the file says is marked as outside text, and printable", async () => {
    const { problems } = await parse(`${smallest}"::error::\\e[31m": 1\nports: ["\\n::error::"]`);
    expect(problems?.[0]).toContain(outside("::error::\\u001b[31m"));
    expect(problems?.join("")).not.toMatch(/\p{Cc}/u);
  });
});
