/** Environment variables by name, handed in from the edge. */
export type Environment = Readonly<Record<string, string | undefined>>;
