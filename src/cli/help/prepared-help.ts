/**
 * The help of each command, by its name, and of the program, by an empty name, as wide as a page. In an executable, the build has replaced this module by
 * one that contains them; without them, help is written when it is asked for.
 */
export const preparedHelp: ReadonlyMap<string, string> = new Map();
