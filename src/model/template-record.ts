export interface TemplateRecord {
  readonly name: string;
  /** The kind of machine, in a few words; undefined: the template is damaged. */
  readonly machine: string | undefined;
  readonly createdAt: Date | undefined;
  readonly sizeBytes: number;
  /** The ids of the clusters that are built on it. */
  readonly clusters: readonly string[];
  /** Why machines of this kind boot instead. */
  readonly problem: string | undefined;
}
