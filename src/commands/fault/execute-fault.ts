import type { Backend, BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import type { FaultRequest } from "../../platform/faults/fault-kinds.ts";
import {
  type Fault,
  beginFault,
  endFaults,
  listFaults,
  untilFaultEnds,
} from "../../cluster/faults/faults.ts";
import { outside } from "../../outside-text.ts";
import { table } from "../../cli/layout.ts";
import { durationText } from "../../system/amounts.ts";
import { scopeWords } from "../create/report-created.ts";
import type { JsonResults } from "../json-results.ts";
import { newSeed } from "./chaos-text.ts";
import type { FaultInput } from "./check-fault.ts";
import { executeRandom } from "./execute-random.ts";

type Input = Readonly<Record<string, unknown>> &
  FaultInput & { readonly clusterId: string; readonly wait: boolean };

export async function executeFault(
  kind: BackendKind,
  input: Input,
  context: Context,
): Promise<void> {
  const { action, clusterId, nodes = [] } = input;
  const { output, progress } = context;
  const backend: Backend<unknown> = await kind.open(context, input);
  if (action === "list") {
    const faults = (await listFaults(context, backend, clusterId)).map(viewOf);
    if (faults.length === 0) progress.note("There are no faults.");
    return output.result({
      text: faults.length === 0 ? "" : tableOf(faults, context.columns),
      data: { faults } satisfies JsonResults["fault"],
    });
  }
  if (action === "heal") {
    const faults = (await endFaults(context, backend, { clusterId, nodes })).map(viewOf);
    if (faults.length === 0) progress.note("There is no fault to heal.");
    return output.result({
      text: faults.map(({ id }) => id).join("\n"),
      data: { faults } satisfies JsonResults["fault"],
    });
  }
  if (action === "random") {
    const { dryRun, durationMs, seed = newSeed(), ...options } = input;
    const scope = scopeWords(kind, input);
    const request = { clusterId, scope, dryRun, durationMs, options: { ...options, seed } };
    return await executeRandom(backend, request, context);
  }
  const fault = await begin(backend, { ...input, kind: action }, context);
  output.result({ text: fault.id, data: { fault } satisfies JsonResults["fault"] });
}

async function begin(
  backend: Backend<unknown>,
  { clusterId, wait, ...request }: FaultRequest & Pick<Input, "clusterId" | "wait">,
  context: Context,
): Promise<Fault> {
  const length = durationText(request.durationMs / 1000);
  using _left = context.onAbandon(
    () => `A fault may be left; the nodes heal it by themselves within ${length}.`,
  );
  const begun = await beginFault(context, backend, {
    clusterId,
    request,
  });
  if (wait) await untilFaultEnds(context, backend, { clusterId, begun });
  else
    context.progress.note(`The nodes heal fault ${begun.fault.id} by themselves after ${length}.`);
  return begun.fault;
}

/** The description comes from a node, so it is marked as outside text. */
const viewOf = (fault: Fault): Fault => ({ ...fault, description: outside(fault.description) });

const tableOf = (faults: readonly Fault[], columns: number): string =>
  table(
    [
      ["FAULT", "TIME LEFT", "NODES", "WHAT"],
      ...faults.map((each) => [
        each.id,
        durationText(each.secondsLeft),
        each.nodes.join(", "),
        each.description,
      ]),
    ],
    columns,
  );
