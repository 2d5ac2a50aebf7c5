import { expect, test } from "bun:test";
import { defineCommand } from "../../../../src/cli/command.ts";
import { commandHelp, manualPage, programHelp } from "../../../../src/cli/help/help.ts";
import { argument, option } from "../../../../src/cli/options/option.ts";
import { choice, text } from "../../../../src/cli/options/value-types.ts";
import { create, declared } from "../declared-program.ts";

const copy = defineCommand({
  name: "copy",
  summary: "Copies a file",
  description: " Copies a  file.\n \nIt never copies two. ",
  positionals: {},
  options: {
    half: option(text, {
      flag: "--half",
      placeholder: "<as wide as a half>",
      summary: "As wide as half of the lines",
    }),
    wider: option(text, {
      flag: "--wider",
      placeholder: "<wider than a half>",
      summary: "Gets a line to itself",
    }),
    tone: option(choice(["warm", "cold"]), { flag: "--tone", summary: "How warm it is" }),
  },
  examples: [
    { words: "copy one two", summary: "This example has a summary of 56 columns, and it has two" },
    {
      words: "copy three four",
      summary: "This example has a summary of 58 columns, and it has three",
    },
  ],
  run: async () => {},
});

const show = defineCommand({
  name: "show",
  summary: "Shows a file",
  description: "",
  positionals: { name: argument(text, { name: "NAME_OF_THE_FILE_TO_SHOW", summary: "Its name" }) },
  options: {},
  examples: [],
  run: async () => {},
});

test("the program's help lists its commands", () => {
  expect(programHelp(declared, 80)).toMatchInlineSnapshot(`
    "Usage: cluster-x [OPTIONS] COMMAND [ARGS]...

    Makes clusters

    Commands:
      create  Creates a cluster
      run     Runs a command: on a node

    Options:
          --version   Print the version
          --licenses  Print the licenses of all included software
      -h, --help      Show this help

    Run "cluster-x COMMAND --help" for more about a command.
    "
  `);
});

test("a command's help tells all that is declared", () => {
  expect(commandHelp(declared, create, 80)).toMatchInlineSnapshot(`
    "Usage: cluster-x create [OPTIONS] ARTIFACT_URL [DIR]

    Creates a cluster

    Takes a while; it's worth it.

    Costs: a [little] money, say 24 cents\\instance.

    Arguments:
      ARTIFACT_URL  Link to a release artifact
      [DIR]         A folder (default: here) (environment: DIR)

    Options:
          --variant <variant>        The variant (oss, enterprise) (required)
          --masters <masters>        Master count (default: 1)
          --public-agents-with-a-rather-long-name <public_agents_with_a_rather_long_name>
                                     How many of those there are to be, told at such
                                     a length that the line has to be broken
                                     (default: 1)
          --tag <KEY>:<VALUE>        Adds a tag (repeatable)
          --dry-run                  Touch nothing
      -c, --cluster-id <cluster_id>  The cluster's unique id (default: default)
          --output <text|json>       Format of the result on stdout (default: text)
      -v, --verbose                  Print more: -v adds steps and timings, -vv API
                                     calls and remote commands, -vvv remote output
      -h, --help                     Show this help

    Examples:
      # The smallest one
      cluster-x create --variant oss ./it's.sh
    "
  `);
});

test("labels are up to half as wide as the lines, and wider ones get a line to themselves", () => {
  expect(commandHelp(declared, copy, 60)).toMatchInlineSnapshot(`
    "Usage: cluster-x copy [OPTIONS]

    Copies a file

    Copies a file. It never copies two.

    Options:
          --half <as wide as a half>  As wide as half of the
                                      lines
          --wider <wider than a half>
                                      Gets a line to itself
          --tone <tone>               How warm it is (warm,
                                      cold)
      -h, --help                      Show this help

    Examples:
      # This example has a summary of 56 columns, and it has two
      cluster-x copy one two
      # This example has a summary of 58 columns, and it has
      # three
      cluster-x copy three four
    "
  `);
});

test("a very narrow terminal gets columns of 20", () => {
  expect(commandHelp(declared, show, 10)).toMatchInlineSnapshot(`
    "Usage: cluster-x show [OPTIONS] [NAME_OF_THE_FILE_TO_SHOW]

    Shows a
    file

    Arguments:
      [NAME_OF_THE_FILE_TO_SHOW]
        Its name

    Options:
      -h, --help
        Show this help
    "
  `);
});

test.each([40, 60, 100])(
  "no line of the help is longer than %d columns where words allow",
  (width) => {
    const lines = commandHelp(declared, create, width).split("\n");
    const long = lines.filter((line) => line.length > width);
    expect(
      long.filter(
        (line) =>
          line.trim().includes(" ") &&
          !/^( {2}(-|cluster-x)|Usage: )/.test(line.replace(/^ {6}/, "  ")),
      ),
    ).toEqual([]);
  },
);

test("in the manual page, the paragraphs of a description have no spaces around them", () => {
  const page = manualPage(
    { ...declared, commands: [copy] },
    { version: "2025.1.31.0", date: "2025-01-31" },
  );
  expect(page).toContain("Copies a file.\n.PP\nCopies a file.\n.PP\nIt never copies two.\n.TP\n");
});

test("a manual page ends with the sections that it is given", () => {
  const entries = [["0", "Everything was done"]] as const;
  const page = manualPage(declared, { version: "1", date: "2025-01-31" }, [
    { title: "EXIT STATUS", entries },
  ]);
  expect(page).toEndWith('.SH "EXIT STATUS"\n.TP\n.B 0\nEverything was done\n');
});

// Shows R20.
test("the manual page is roff that prints every text as it is", () => {
  expect(manualPage(declared, { version: "2025.1.31.0", date: "2025-01-31" }))
    .toMatchInlineSnapshot(`
    ".TH "CLUSTER\\-X" 1 "2025\\-01\\-31" "cluster\\-x 2025.1.31.0"
    .SH NAME
    cluster\\-x \\- Makes clusters
    .SH SYNOPSIS
    .B cluster\\-x
    [OPTIONS] COMMAND [ARGS]...
    .SH OPTIONS
    .TP
    .B \\-h, \\-\\-help
    Show this help
    .TP
    .B \\-\\-version
    Print the version
    .TP
    .B \\-\\-licenses
    Print the licenses of all included software
    .SH COMMANDS
    .SS "create"
    .B cluster\\-x create [OPTIONS] ARTIFACT_URL [DIR]
    .PP
    Creates a cluster.
    .PP
    Takes a while; it's worth it.
    .PP
    Costs: a [little] money, say 24 cents\\einstance.
    .TP
    .B ARTIFACT_URL
    Link to a release artifact
    .TP
    .B [DIR]
    A folder (default: here) (environment: DIR)
    .TP
    .B \\-\\-variant <variant>
    The variant (oss, enterprise) (required)
    .TP
    .B \\-\\-masters <masters>
    Master count (default: 1)
    .TP
    .B \\-\\-public\\-agents\\-with\\-a\\-rather\\-long\\-name <public_agents_with_a_rather_long_name>
    How many of those there are to be, told at such a length that the line has to be broken (default: 1)
    .TP
    .B \\-\\-tag <KEY>:<VALUE>
    Adds a tag (repeatable)
    .TP
    .B \\-\\-dry\\-run
    Touch nothing
    .TP
    .B \\-c, \\-\\-cluster\\-id <cluster_id>
    The cluster's unique id (default: default)
    .TP
    .B \\-\\-output <text|json>
    Format of the result on stdout (default: text)
    .TP
    .B \\-v, \\-\\-verbose
    Print more: \\-v adds steps and timings, \\-vv API calls and remote commands, \\-vvv remote output
    .PP
    The smallest one:
    .PP
    .nf
    .RS 4
    cluster\\-x create \\-\\-variant oss ./it's.sh
    .RE
    .fi
    .SS "run"
    .B cluster\\-x run [OPTIONS] NODE_ARGS...
    .PP
    Runs a command: on a node.
    .TP
    .B NODE_ARGS...
    The command
    .TP
    .B \\-c, \\-\\-cluster\\-id <cluster_id>
    The cluster's unique id (default: default)
    "
  `);
});
