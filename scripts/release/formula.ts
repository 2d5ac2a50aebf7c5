/** The Homebrew formula of a release. Guide: https://docs.brew.sh/Formula-Cookbook */
import type { Platform } from "./platforms.ts";

export interface FormulaFacts {
  readonly tag: string;
  readonly description: string;
  /** Where people read about the program; also where `brew install --HEAD` clones from. */
  readonly repository: string;
  /** One for each platform of the release. */
  readonly archives: readonly Archive[];
  readonly programs: readonly string[];
}

interface Archive {
  readonly platform: Platform;
  readonly url: string;
  readonly sha256: string;
}

/** Text of `cluster-e2e.rb`. Homebrew does not strip; nor may we: that destroys the executables. */
export function formula(facts: FormulaFacts): string {
  const { tag, description, repository, archives, programs } = facts;
  return `class ClusterE2e < Formula
  desc ${ruby(description)}
  homepage ${ruby(repository)}
  version ${ruby(tag)}
  license "Apache-2.0"

  head do
    url ${ruby(repository)}, using: :git, branch: "main"

    depends_on "node" => :build
  end

${system(
  "macos",
  archives.filter(({ platform }) => platform.os === "darwin"),
)}
${system(
  "linux",
  archives.filter(({ platform }) => platform.os === "linux"),
)}
  def install
    share_folder = build.head? ? build_from_source : "share"
    bin.install Dir[build.head? ? "dist/cluster-*" : "bin/*"]
    man1.install Dir["#{share_folder}/man/man1/*"]
    bash_completion.install Dir["#{share_folder}/bash-completion/completions/*"]
    zsh_completion.install Dir["#{share_folder}/zsh/site-functions/*"]
    fish_completion.install Dir["#{share_folder}/fish/vendor_completions.d/*"]
  end

  # The pinned Bun comes from npm: its package for this platform holds it, and no install script has to run.
  def build_from_source
    system "npm", "install", "--ignore-scripts", "--no-save", "--no-audit", "--no-fund"
    bun = Dir["node_modules/@oven/bun-*/bin/bun"].first
    odie "npm has no Bun for this machine" if bun.nil?
    # By their files: as scripts of the package they would be run by the notice that stands in for Bun in its own package.
    system "./#{bun}", "scripts/build.ts"
    system "./#{bun}", "scripts/documents.ts", "dist"
    "dist/share"
  end

  test do
    expected = version.head? ? "0.0.0+" : version.to_s
    %w[${programs.join(" ")}].each do |program|
      assert_match expected, shell_output("#{bin}/#{program} --version")
    end
  end
end
`;
}

function system(name: "macos" | "linux", archives: readonly Archive[]): string {
  const lines = archives.flatMap(({ platform, url, sha256 }) => [
    `    on_${platform.cpu === "arm64" ? "arm" : "intel"} do`,
    `      url ${ruby(url)}`,
    `      sha256 ${ruby(sha256)}`,
    "    end",
  ]);
  return lines.length === 0 ? "" : [`  on_${name} do`, ...lines, "  end", ""].join("\n");
}

/** A string literal. */
const ruby = (text: string): string => `"${text.replaceAll(/["\\#]/g, String.raw`\$&`)}"`;
