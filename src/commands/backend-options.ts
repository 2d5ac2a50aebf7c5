import { namingFlags } from "../cli/options/flag-names.ts";
import { option } from "../cli/options/option.ts";
import type { Invocation, Option } from "../cli/options/option.ts";
import type { BackendOption, OptionSchema, SchemaValues } from "../model/option-schema.ts";

type Flag = `--${string}`;

/** Command-line options made from a backend's own declarations. A flag is the option's name unless `flags` has another. */
export function backendOptions<const Schema extends OptionSchema>(
  schema: Schema,
  flags: { readonly [Name in keyof Schema]?: Flag } = {},
): { readonly [Name in keyof Schema]: Option<SchemaValues<Schema>[Name]> } {
  const flagOf = (name: string): Flag => flags[name] ?? flagNamed(name);
  const nameFlags = namingFlags(() => Object.keys(schema).map((name) => [name, flagOf(name)]));
  const declared = Object.entries(schema).map(([name, { summary, ...each }]) => {
    return [name, backendOption(flagOf(name), { ...each, summary: nameFlags(summary) })];
  });
  return Object.fromEntries(declared) as { readonly [Name in keyof Schema]: Option<SchemaValues<Schema>[Name]> };
}

function backendOption(flag: Flag, { read, choices, completes, ...traits }: BackendOption): Option {
  const readPath = async (given: string, { cwd }: Invocation): Promise<unknown> => read(await absolute(given, cwd));
  const type = completes === undefined ? { parse: read } : { parse: readPath, completes };
  return option({ ...type, ...(choices !== undefined && { choices }) }, { flag, ...traits });
}

/** Backends don't know the working directory. */
async function absolute(given: string, cwd: string): Promise<string> {
  if (given === "" || URL.canParse(given)) return given;
  const { resolve } = await import("node:path");
  return resolve(cwd, given);
}

/** `imageSha256` is `--image-sha256`. */
const flagNamed = (name: string): Flag => `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
