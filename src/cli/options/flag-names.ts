/** Replaces neutral option names in a text with flags: "`timeout`" becomes "--timeout", "`agents 0`" becomes "--agents 0". */
export type NameFlags = (text: string) => string;

/** The part of a program that this needs. */
interface Declaring {
  readonly commands: readonly { readonly options: Readonly<Record<string, { readonly flag: string }>> }[];
}

/** The names are the keys under which commands declare their options. */
export const flagNames = (program: Declaring): NameFlags =>
  namingFlags(() =>
    program.commands.flatMap(({ options }) => Object.entries(options).map(([name, { flag }]) => [name, flag])),
  );

/** Backquoted words that are not option names stay unchanged. */
export function namingFlags(flagsByName: () => readonly (readonly [string, string])[]): NameFlags {
  const known: { flags?: ReadonlyMap<string, string> } = {};
  return (text) => {
    if (!text.includes("`")) return text;
    known.flags ??= new Map(flagsByName());
    const { flags } = known;
    return text.replaceAll(/`(\w+)( [^`\n]+)?`/g, (found, name: string, value = "") => {
      const flag = flags.get(name);
      return flag === undefined ? found : `${flag}${value}`;
    });
  };
}
