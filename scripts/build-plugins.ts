/** Plugins with which the build replaces modules or leaves them out. */
import type { BunPlugin } from "bun";
import type { Program } from "../src/cli/command.ts";
import { commandHelp, programHelp } from "../src/cli/help/help.ts";
import { pageWidth } from "../src/cli/help/prepared-help-name.ts";

/**
 * Leaves out ssh2's two native modules, which it works without. With them, the result would depend on whether this machine
 * could compile them, and an executable would look for them in the user's current folder.
 */
export const withoutNativeModules: BunPlugin = {
  name: "without native modules",
  setup(build) {
    build.onResolve({ filter: /^cpu-features$|\/sshcrypto\.node$/ }, ({ path }) => ({
      path,
      namespace: "native",
    }));
    build.onLoad({ filter: /./, namespace: "native" }, () => ({
      contents: "throw new Error('left out')",
      loader: "js",
    }));
  },
};

/**
 * Leaves out what our programs don't use: of ssh2, agents, key generation, its server and SFTP; the decryption of keys, because
 * a key with a passphrase is refused; and the recognition of browsers.
 */
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
      ["", programHelp(program, pageWidth)],
      ...program.commands.map((command) => [
        command.name,
        commandHelp(program, command, pageWidth),
      ]),
    ].map(([name, text = ""]) => [name, text.trimEnd()]);
    const contents = [`export const preparedHelp = new Map(${JSON.stringify(texts)});`].join("\n");
    build.onLoad({ filter: /\/cli\/help\/prepared-help\.ts$/ }, () => ({ contents, loader: "ts" }));
  },
});
