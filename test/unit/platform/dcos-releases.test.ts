/** The dcos layout, held against what real releases ask of their nodes (test/dcos-platform/releases.json). */
import { describe, expect, test } from "bun:test";
import { dcosLayout } from "../../../src/platform/layouts/dcos.ts";
import { layouts } from "../../../src/platform/layouts/find-layout.ts";
import { bootstrapPort } from "../../../src/platform/install/bootstrap/serve.ts";
import table from "../../dcos-platform/releases.json" with { type: "json" };

interface Release {
  readonly dockerVersion: { readonly read: string };
  readonly programs: { readonly names: readonly string[] };
  readonly nogroup: { readonly isChecked: boolean };
  readonly ports: { readonly master: readonly number[]; readonly agent: readonly number[] };
  readonly versionFileVariant: { readonly isThere: boolean };
  readonly nodeCheck: { readonly command: readonly string[] };
  readonly timeCheck: { readonly default: boolean };
  readonly bootstrapCa?: { readonly port: number };
  readonly upgrade: {
    readonly option: string;
    readonly linePrefix: string;
    readonly flags: readonly string[];
  };
}

const releases = Object.entries(table.releases as Readonly<Record<string, Release>>);
const configuration = {};
const conditions = dcosLayout.conditions({ nodesKeepTime: true, configuration });

describe.each(releases)("%s", (name, release) => {
  test("has all programs that its preflight looks for", () => {
    const ofSystemd = ["systemd-notify"];
    expect(dcosLayout.needs).toContain("docker");
    for (const program of release.programs.names)
      expect([...dcosLayout.needs, ...ofSystemd]).toContain(program);
  });

  // Shows R114.
  test("finds a version of Docker that it accepts", () => {
    const shims = Object.keys(dcosLayout.installShims(name));
    expect(shims).toEqual(release.dockerVersion.read === "last-line" ? ["docker"] : []);
  });

  test("finds its ports free", () => {
    expect(conditions).toContain("dns-port-free");
    for (const port of release.ports.master) expect(dcosLayout.masterPorts).toContain(port);
    expect([...release.ports.master, ...release.ports.agent]).not.toContain(bootstrapPort(layouts));
    if (release.nogroup.isChecked) expect(conditions).toContain("docker");
  });

  // Shows R114.
  test("keeps port 443 of the first master free, and is given no key that isn't its own", () => {
    const facts = { release: name, nodesKeepTime: true };
    const key = release.bootstrapCa === undefined ? {} : { exhibitor_tls_enabled: false };
    expect(dcosLayout.baseConfiguration({ ...facts, variant: "enterprise" })).toEqual(key);
    expect(dcosLayout.baseConfiguration({ ...facts, variant: "oss" })).toEqual({});
  });

  test("starts on a clock that nobody synchronizes, where that is the nodes' lot", () => {
    const given = dcosLayout.baseConfiguration({
      variant: "oss",
      release: name,
      nodesKeepTime: false,
    });
    expect(given).toEqual(release.timeCheck.default ? { check_time: false } : {});
    expect(conditions).toContain("clock-synchronized");
  });

  test("checks its nodes by a program that is known", () => {
    const [program = "", ...rest] = release.nodeCheck.command;
    expect(dcosLayout.nodeChecks).toContainEqual([`/opt/mesosphere/bin/${program}`, ...rest]);
  });
});

test.each(releases)(
  "%s is asked for its upgrade as its generator and its script expect",
  (_, { upgrade }) => {
    const { words, script, scriptArguments } = dcosLayout.upgrade!;
    expect(words("1.9.0")).toEqual([upgrade.option, "1.9.0"]);
    expect(script).toEqual({ linePrefix: upgrade.linePrefix });
    for (const word of scriptArguments("master")) expect(upgrade.flags).toContain(word);
  },
);

test("a clock that the user told the platform not to look at is not waited for", () => {
  for (const check_time of [false, "false"]) {
    expect(
      dcosLayout.conditions({ nodesKeepTime: true, configuration: { check_time } }),
    ).not.toContain("clock-synchronized");
  }
  expect(dcosLayout.conditions({ nodesKeepTime: false, configuration })).not.toContain(
    "clock-synchronized",
  );
});

test.each([
  ["1.11.11", ["docker"]],
  ["1.11.12", []],
  ["1.12.4", ["docker"]],
  ["1.13.3", ["docker"]],
  ["1.13.4", []],
  ["1.14.0-alpha", []],
  ["2.2.0", []],
  ["some-build", []],
])("the install script of %s is shown %j", (release, shims) => {
  expect(Object.keys(dcosLayout.installShims(release))).toEqual(shims);
});
