import { expect, test } from "bun:test";
import { readBuildFailure } from "../../../../../src/backend/container/launch/node-image.ts";

const long = `RUN printf '#!/bin/sh' && apt-get update && apt-get install --yes ${"a-package ".repeat(20)}`;

// Shows R112.
test.each([
  [
    "Docker 20's own builder, a package that isn't there",
    `Step 1/2 : FROM localhost/base:1\n ---> 7372f71ef895\nStep 2/2 : ${long}\nReading package lists...\n\u001B[91mE: Unable to locate package nothing\n\u001B[0mThe command '/bin/sh -c ${long}' returned a non-zero code: 100\n`,
    {
      reason: "E: Unable to locate package nothing",
      step: "RUN printf '#!/bin/sh' && apt-get update && apt-get…",
      cause: "unknown",
    },
  ],
  [
    "Docker 20's own builder, no name server",
    `Step 1/8 : FROM docker.io/library/debian:12\nStep 3/8 : RUN apt-get update\nErr:1 http://deb.debian.org/debian bookworm InRelease\n  Temporary failure resolving 'deb.debian.org'\nW: Some index files failed to download.\nE: Unable to locate package curl\n`,
    { reason: "E: Unable to locate package curl", step: "RUN apt-get update", cause: "network" },
  ],
  [
    "BuildKit, a mirror that is gone",
    `#5 [2/5] RUN dnf -y install tar\n#5 1.234 Errors during downloading metadata for repository 'baseos':\n#5 1.235 Error: Failed to download metadata for repo 'baseos': Cannot prepare internal mirrorlist\n#5 ERROR: process "/bin/sh -c dnf -y install tar" did not complete successfully: exit code: 1\n`,
    {
      reason:
        "Error: Failed to download metadata for repo 'baseos': Cannot prepare internal mirrorlist",
      step: "RUN dnf -y install tar",
      cause: "network",
    },
  ],
  [
    "Docker 20's own builder, no registry",
    `Step 1/8 : FROM docker.io/library/debian:12\nGet "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 192.0.2.53:53: no such host\n`,
    {
      reason:
        'Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 192.0.2.53:53: no such host',
      step: "FROM docker.io/library/debian:12",
      cause: "registry",
    },
  ],
  [
    "BuildKit, a registry that refuses",
    `#2 [internal] load metadata for docker.io/library/debian:12\n#2 ERROR: failed to resolve source metadata for docker.io/library/debian:12: dial tcp: lookup registry-1.docker.io: no such host\n`,
    {
      reason:
        "#2 ERROR: failed to resolve source metadata for docker.io/library/debian:12: dial tcp: lookup registry-1.docker.io: no such host",
      step: undefined,
      cause: "registry",
    },
  ],
  [
    "BuildKit, a program for logins that isn't there",
    `#2 [internal] load metadata for docker.io/library/debian:12\n#2 ERROR: error getting credentials - err: exec: "docker-credential-desktop": executable file not found in $PATH, out: \`\`\nERROR: failed to solve: debian:12: failed to resolve source metadata for docker.io/library/debian:12: error getting credentials - err: exec: "docker-credential-desktop": executable file not found in $PATH, out: \`\`\n`,
    {
      reason:
        'ERROR: failed to solve: debian:12: failed to resolve source metadata for docker.io/library/debian:12: error getting credentials - err: exec: "docker-credential-desktop": executable file not found in $PATH, out: ``',
      step: undefined,
      cause: "logins",
    },
  ],
  [
    "Podman, a runtime that may not",
    `STEP 1/3: FROM docker.io/library/debian:12\nSTEP 2/3: ENV container=docker\nSTEP 3/3: RUN apt-get update\nerror running container: from /usr/bin/crun creating container for [/bin/sh -c apt-get update]: setrlimit RLIMIT_NPROC: Operation not permitted\n: exit status 1\nError: building at STEP "RUN apt-get update": while running runtime: exit status 1\n`,
    {
      reason:
        "error running container: from /usr/bin/crun creating container: setrlimit RLIMIT_NPROC: Operation not permitted",
      step: "RUN apt-get update",
      cause: "runtime",
    },
  ],
  [
    "a builder on a terminal, a step of 60 characters",
    `Step 2/3 : RUN ${"x".repeat(56)}\r\n  E: Unable to locate package nothing \r\n`,
    {
      reason: "E: Unable to locate package nothing",
      step: `RUN ${"x".repeat(56)}`,
      cause: "unknown",
    },
  ],
  ["nothing at all", "", { reason: undefined, step: undefined, cause: "unknown" }],
] as const)("of %s the reason, the step and the cause are told", (_, output, expected) => {
  expect(readBuildFailure(output)).toEqual(expected);
});
