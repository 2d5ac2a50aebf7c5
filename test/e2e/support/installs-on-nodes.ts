/** The lines that say that a node installs packages. An image that takes longer than a minute to build says the same of itself. */
export const installsOnNodes = (stderr: string): readonly string[] =>
  stderr
    .split("\n")
    .filter((line) => line.includes("installing ") && !line.startsWith("Build the node image"));
