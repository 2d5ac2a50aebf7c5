/** A text of the program with its flags in place of neutral names: "`timeout`" becomes "--timeout", "`agents 0`" becomes "--agents 0". */
export type NameFlags = (text: string) => string;

/** What this needs of a program. */
interface Declaring {
  readonly commands: readonly { readonly options: Readonly<Record<string, { readonly flag: string }>> }[];
}

/** The names are those under which commands declare their options. */
export const flagNames = (program: Declaring): NameFlags =>
  namingFlags(() =>
    program.commands.flatMap(({ options }) => Object.entries(options).map(([name, { flag }]) => [name, flag])),
  );

/** Backquoted words that are no names of options stay as they are. */
export function namingFlags(flagsByName: () => readonly (readonly [string, string])[]): NameFlags {
  return (text) => {
    if (!text.includes("`")) return text;
    const flags = new Map(flagsByName().map(([name, flag]) => [name, flag]));
    return text.replaceAll(/`(\w+)( [^`\n]+)?`/g, (found, name: string, value = "") => {
      const flag = flags.get(name);
      return flag === undefined ? found : `${flag}${value}`;
    });
  };
}
