import type { BackendKind } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { endText } from "../../system/amounts.ts";
import { endsByItself, placeOptions, programName } from "../backend-options.ts";

interface Kept {
  readonly id: string;
  readonly expiresAt?: Date | undefined;
  /** The options that name its place, among others. */
  readonly place: Readonly<Record<string, unknown>>;
}

/** Says that a cluster is kept although the command failed or was interrupted, where its logs are, and how it ends. */
export function keptNote(kind: BackendKind, { id, expiresAt, place }: Kept, { clock }: Pick<Context, "clock">): string {
  const command = (name: string): string =>
    `    ${programName(kind)} ${name} --cluster-id ${id}${placeWords(kind, place)}`;
  const end = expiresAt === undefined ? "by itself, two hours after its creation" : endText(expiresAt, clock.now());
  const ends = endsByItself(kind) || expiresAt !== undefined ? [`It ends ${end}.`] : [];
  const removal = endsByItself(kind) ? [] : ["Remove it:", command("destroy")];
  return [`Cluster "${id}" is kept. Save its logs:`, command("logs"), ...ends, ...removal].join("\n");
}

/** The options that name the place, unless it is the default one. */
export function placeWords(kind: BackendKind, input: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(placeOptions(kind)).filter(
    ([name, option]) => input[name] !== undefined && input[name] !== option.default,
  );
  return given.map(([name, option]) => ` ${option.flag} ${String(input[name])}`).join("");
}
