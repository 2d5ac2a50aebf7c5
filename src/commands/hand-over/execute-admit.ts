import type { Backend, BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { admitRange, listAdmittedRanges, removeRange } from "../../cluster/admission.ts";
import { table } from "../../cli/layout.ts";

type AdmitInput = Readonly<Record<string, unknown>> & {
  readonly clusterId: string;
  readonly range: string | undefined;
  readonly list: boolean;
  readonly remove: string | undefined;
};

/** Shows or changes who is admitted, and prints the result. */
export async function executeAdmit(kind: BackendKind, input: AdmitInput, context: Context): Promise<void> {
  const backend = await kind.open(input, context, context.signal);
  const { list: isList, range, remove } = input;
  if (isList) return await list(backend, input.clusterId, context);
  if (remove !== undefined) {
    const removed = await removeRange(backend, { clusterId: input.clusterId, range: remove }, context.signal);
    return context.output.result({ text: removed, data: { removed } });
  }
  const admitted = await admitRange(backend, { clusterId: input.clusterId, range }, context.signal);
  context.output.result({ text: admitted, data: { admitted } });
}

async function list(
  backend: Backend<unknown>,
  id: string,
  { output, columns, progress, signal }: Context,
): Promise<void> {
  const ranges = await listAdmittedRanges(backend, id, signal);
  if (ranges.length === 0) progress.note(`No address is admitted to cluster "${id}".`);
  const rows = ranges.map(({ range, ports }) => [range, ports.join(", ")]);
  output.result({ text: rows.length === 0 ? "" : table([["CIDR", "PORTS"], ...rows], columns), data: { ranges } });
}
