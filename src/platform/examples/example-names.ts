/** The platforms that the programs contain. Apart from their files, so that a program can start without those. */
export const exampleNames = ["bare", "etcd", "pacemaker", "slurm", "swarm"] as const;

export type ExampleName = (typeof exampleNames)[number];
