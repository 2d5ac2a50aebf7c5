import { expect, test } from "bun:test";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import { manualSections } from "../../../src/commands/manual-sections.ts";
import { programFor } from "../../../src/commands/program.ts";

test("snapshots and destroy exist where clusters have no lifetime", () => {
  const own = [cloudKind, containerKind, vmKind].map((kind) =>
    programFor(kind)
      .commands.map(({ name }) => name)
      .filter((name) => name === "snapshot" || name === "destroy"),
  );
  expect(own).toEqual([[], ["snapshot", "destroy"], ["snapshot", "destroy"]]);
});

test("export, import and admit exist where other computers can reach a cluster", () => {
  const having = [cloudKind, containerKind, vmKind].filter((kind) => {
    const names = programFor(kind).commands.map(({ name }) => name);
    return ["export", "import", "admit"].every((name) => names.includes(name));
  });
  expect(having).toEqual([cloudKind]);
});

test("a program gives a reason for each command that only other programs have", () => {
  const programs = [cloudKind, containerKind, vmKind].map(programFor);
  const all = new Set(programs.flatMap(({ commands }) => commands.map(({ name }) => name)));
  for (const { commands, missingCommands } of programs) {
    const own = commands.map(({ name }) => name);
    expect([...own, ...(missingCommands?.keys() ?? [])].toSorted()).toEqual([...all].toSorted());
  }
});

test("every example in the help fits a terminal of 80 columns", () => {
  const lines = [cloudKind, containerKind, vmKind]
    .map(programFor)
    .flatMap(({ name, commands }) =>
      commands.flatMap(({ examples }) => examples.map(({ words }) => `  ${name} ${words}`)),
    );
  expect(lines.length).toBeGreaterThan(60);
  expect(lines.filter((line) => line.length > 80)).toEqual([]);
});

test.each([cloudKind, containerKind, vmKind])(
  "the manual page names every variable: %#",
  (kind) => {
    const named = manualSections(programFor(kind)).flatMap(({ entries }) =>
      entries.flatMap(([names]) => names.split(", ")),
    );
    const declared: readonly { readonly environment?: string }[] = programFor(
      kind,
    ).commands.flatMap(({ options, positionals }) => [
      ...Object.values(options),
      ...Object.values(positionals),
    ]);
    const variables = declared.flatMap(({ environment }) => environment ?? []);
    expect(variables).toContain("CLUSTER_ID");
    expect(variables.filter((name) => !named.includes(name))).toEqual([]);
  },
);
