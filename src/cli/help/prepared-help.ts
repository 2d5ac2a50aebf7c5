/**
 * The help of each command, by its name, and of the program, by an empty name, wrapped to the width of a page. The
 * build replaces this module with one that contains them; if the sources run directly, help is rendered on demand.
 */
export const preparedHelp: ReadonlyMap<string, string> = new Map();
