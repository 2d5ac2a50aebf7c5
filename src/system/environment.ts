/** Environment variables by name, passed in from the edge. */
export type Environment = Readonly<Record<string, string | undefined>>;
