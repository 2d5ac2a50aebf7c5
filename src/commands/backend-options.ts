import type { BackendKind } from "../backend/contract.ts";
import { namingFlags } from "../cli/options/problems.ts";
import { byRule, parsePath } from "../cli/options/value-types.ts";
import { flag, option, type Invocation, type Option, type Options } from "../cli/options/option.ts";
import { type BackendOption, scopeVariable } from "../model/option-schema.ts";

export const programName = ({ name }: BackendKind): string => `cluster-${name}`;

/**
 * Whether clusters end by themselves, and cost money until then. Clusters of other backends exist
 * until a command or a chosen lifetime ends them.
 */
export const endsByItself = ({ local }: BackendKind): boolean => local === undefined;

/** Options, such as the region, of every command that finds clusters. */
export const scopeOptions = (kind: BackendKind): Options =>
  optionsWhere(kind, (each) => each.isScope === true);

/** Options of `create` that only this backend has, after the one that all backends have. */
export function creationOptions(kind: BackendKind): { readonly linuxDistribution: Option<string> } {
  const { linuxDistribution, ...own } = optionsWhere(kind, (each) => each.isScope !== true);
  return { linuxDistribution: linuxDistribution as Option<string>, ...own };
}

/** The options whose values a file with the cluster doesn't contain: their flags, by their names. */
export const localFlags = ({ options }: BackendKind): ReadonlyMap<string, string> =>
  new Map(
    Object.entries<BackendOption>(options)
      .filter(([, { isLocal }]) => isLocal === true)
      .map(([name, each]) => [name, flagOf(name, each)]),
  );

/**
 * Options or arguments of some backends only. The type has them for every program, so that their
 * values are `undefined` where they aren't declared.
 */
export const declaredIf = <Declared>(isDeclared: boolean, declared: Declared): Declared =>
  (isDeclared ? declared : {}) as Declared;

function optionsWhere(
  { options }: BackendKind,
  isWanted: (each: BackendOption) => boolean,
): Options {
  const declared = Object.entries<BackendOption>(options);
  const nameFlags = namingFlags(() => declared.map(([name, each]) => [name, flagOf(name, each)]));
  const wanted = declared.filter(([, each]) => isWanted(each));
  return Object.fromEntries(
    wanted.map(([name, each]) => [
      name,
      commandLineOption(name, { ...each, summary: nameFlags(each.summary) }),
    ]),
  );
}

function commandLineOption(name: string, declared: BackendOption): Option {
  if (declared.isFlag === true)
    return flag({ flag: flagOf(name, declared), summary: declared.summary });
  const {
    read: _r,
    what: _w,
    choices: _c,
    completes,
    isScope = false,
    isLocal: _l,
    ...traits
  } = declared;
  const type = byRule(declared);
  // Backends don't know the working directory.
  const parseAbsolute = async (given: string, invocation: Invocation): Promise<unknown> =>
    type.parse(URL.canParse(given) ? given : await parsePath(given, invocation), invocation);
  return option(completes === undefined ? type : { parse: parseAbsolute, completes }, {
    ...traits,
    flag: flagOf(name, declared),
    isRepeated: isScope,
    ...(isScope && { environment: scopeVariable(name) }),
  });
}

/** `imageSha256` is `--image-sha256`, unless the option has another flag. */
const flagOf = (name: string, { flag: own }: BackendOption): `--${string}` =>
  own ?? `--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
