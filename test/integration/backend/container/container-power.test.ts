/** Nodes of a scripted engine that stop and start again. */
import { expect, setDefaultTimeout } from "bun:test";
import { neverAborted } from "../../../support/never-aborted.ts";
import { checks, launched, openMachine, statuses } from "./scripted-machine.ts";

setDefaultTimeout(60_000);

checks("a node whose power was cut starts again, alone and with its address", async () => {
  await using machine = await openMachine();
  await launched(machine);
  const { backend } = machine;
  const before = (await backend.find("own", neverAborted))!;
  const [, agent] = before.nodes;
  await backend.power.cutPower(before, [agent!], neverAborted);
  expect(statuses(machine)).toEqual(["running", "exited"]);
  const stopped = (await backend.find("own", neverAborted))!;
  await backend.power.start(stopped, [stopped.nodes[1]!], neverAborted);
  expect(statuses(machine)).toEqual(["running", "running"]);
  expect((await backend.find("own", neverAborted))?.nodes).toEqual(before.nodes);
});
