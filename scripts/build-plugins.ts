/** What the build replaces or leaves out. */
import type { BunPlugin } from "bun";
import type { Program } from "../src/cli/command.ts";
import { commandHelp, programHelp } from "../src/cli/help/help.ts";
import { helpWidth } from "../src/cli/help/prepared-help.ts";

/**
 * ssh2 works as well without its two native modules. Whether a machine could compile them must not change what is built; and
 * an executable that looked for them when it runs would take them from the folder the user stands in.
 */
export const withoutNativeModules: BunPlugin = {
  name: "without native modules",
  setup(build) {
    build.onResolve({ filter: /^cpu-features$|\/sshcrypto\.node$/ }, ({ path }) => ({ path, namespace: "native" }));
    build.onLoad({ filter: /./, namespace: "native" }, () => ({
      contents: "throw new Error('left out')",
      loader: "js",
    }));
  },
};

/**
 * The programs are only ever clients, log in to nodes directly with a key that they have read and that has no passphrase, transfer files without SFTP, and never
 * run in a browser. */
export const withoutUnusedParts: BunPlugin = {
  name: "without unused parts",
  setup(build) {
    build.onLoad(
      {
        filter:
          /\/(?:ssh2\/lib\/(?:agent|http-agents|keygen|server|protocol\/SFTP)|bcrypt-pbkdf\/index|bowser\/es5)\.js$/,
      },
      () => ({
        contents: "module.exports = { isAgent: () => false };",
        loader: "js",
      }),
    );
  },
};

/** Renders the help at build time, so that it is printed without loading what it describes. */
export const withPreparedHelp = (program: Program): BunPlugin => ({
  name: "with prepared help",
  setup(build) {
    const texts = [
      ["", programHelp(program, helpWidth)],
      ...program.commands.map((command) => [command.name, commandHelp(program, command, helpWidth)]),
    ].map(([name, text = ""]) => [name, text.trimEnd()]);
    const contents = [
      `export const helpWidth = ${helpWidth};`,
      `export const preparedHelp = ${JSON.stringify(Object.fromEntries(texts))};`,
    ].join("\n");
    build.onLoad({ filter: /\/cli\/help\/prepared-help\.ts$/ }, () => ({ contents, loader: "ts" }));
  },
});
