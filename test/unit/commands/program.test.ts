import { expect, test } from "bun:test";
import { cloudDriver } from "../../../src/bin/cloud-driver.ts";
import { containerDriver } from "../../../src/bin/container-driver.ts";
import { vmDriver } from "../../../src/bin/vm-driver.ts";
import { programFor } from "../../../src/commands/program.ts";

test("snapshots and destroy exist where clusters have no lifetime", () => {
  const own = [cloudDriver, containerDriver, vmDriver].map((driver) =>
    programFor(driver)
      .commands.map(({ name }) => name)
      .filter((name) => name === "snapshot" || name === "destroy"),
  );
  expect(own).toEqual([[], ["snapshot", "destroy"], ["snapshot", "destroy"]]);
});

test("export, import and admit exist where other computers can reach a cluster", () => {
  const having = [cloudDriver, containerDriver, vmDriver].filter((driver) => {
    const names = programFor(driver).commands.map(({ name }) => name);
    return ["export", "import", "admit"].every((name) => names.includes(name));
  });
  expect(having).toEqual([cloudDriver]);
});

test("a program gives a reason for each command that only other programs have", () => {
  const programs = [cloudDriver, containerDriver, vmDriver].map(programFor);
  const all = new Set(programs.flatMap(({ commands }) => commands.map(({ name }) => name)));
  for (const { commands, missingCommands } of programs) {
    const own = commands.map(({ name }) => name);
    expect([...own, ...(missingCommands?.keys() ?? [])].toSorted()).toEqual([...all].toSorted());
  }
});
