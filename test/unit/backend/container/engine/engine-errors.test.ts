import { expect, test } from "bun:test";
import {
  engineFailure,
  isNameTaken,
  indicates,
} from "../../../../../src/backend/container/engine/engine-errors.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";

const said = (stderr: string) => ({ status: 1, stdout: "", stderr });
const failure = (stderr: string) =>
  engineFailure(engineKinds.docker, ["create", "--name=x"], said(stderr));
const podmanFailure = (stderr: string) =>
  engineFailure(engineKinds.podman, ["create", "--name=x"], said(stderr));

test.each([
  [
    "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission denied",
    "machine-not-set-up",
    "You may not use Docker on this computer",
  ],
  [
    "Cannot connect to the Docker daemon at unix:///nope. Is the docker daemon running?",
    "machine-not-set-up",
    "Docker does not answer: Cannot connect to the Docker daemon at unix:///nope.",
  ],
  // Docker 29
  [
    "failed to connect to the docker API at unix:///nope; check if the path is correct and if the daemon is running: dial unix /nope: connect: no such file or directory",
    "machine-not-set-up",
    "Docker does not answer: failed to connect to the docker API at unix:///nope;",
  ],
  [
    "failed to connect to the docker API at tcp://docker:2375: lookup docker on 10.0.0.53:53: no such host",
    "machine-not-set-up",
    "The name of Docker's computer has no address: failed to connect to the docker API at tcp://docker:2375: lookup docker",
  ],
  [
    "Error response from daemon: could not find an available, non-overlapping IPv4 address pool among the defaults",
    "capacity-lacking",
    "no free addresses",
  ],
  [
    "Error response from daemon: write /var/lib/docker/x: no space left on device",
    "capacity-lacking",
    "disk is full",
  ],
  [
    "Error response from daemon: OCI runtime create failed: no such cgroup\nError: failed to start containers: 0123",
    "engine-failed",
    "docker create failed: OCI runtime create failed: no such cgroup.",
  ],
  [
    "Error response from daemon: client version 1.41 is too old. Minimum supported API version is 1.44, please upgrade your client to a newer version",
    "machine-not-set-up",
    "no version of the API in common: client version 1.41 is too old.",
  ],
  [
    "Error response from daemon: page not found",
    "machine-not-set-up",
    "no version of the API in common: page not found.",
  ],
  [
    "panic: runtime error: invalid memory address\ngoroutine 1 [running]:\n\t/go/docker.go:39 +0x25",
    "engine-failed",
    "docker create failed: runtime error: invalid memory address.",
  ],
  [
    "unable to resolve docker endpoint: invalid bind address format: http://me:secret@there",
    "machine-not-set-up",
    "cannot be understood: invalid bind address format: http://***@there.",
  ],
  [
    "Error response from daemon: Client sent an HTTP request to an HTTPS server.",
    "machine-not-set-up",
    "Docker's daemon wants TLS: Client sent an HTTP request to an HTTPS server.",
  ],
  [
    'error during connect: Get "https://127.0.0.1:2376/v1.24/version": tls: failed to verify certificate: x509: certificate signed by unknown authority',
    "machine-not-set-up",
    "The authority in ca.pem did not sign the certificate of Docker's daemon: tls: failed",
  ],
  [
    'Error response from daemon: Get "https://registry/v2/": x509: certificate signed by unknown authority',
    "engine-failed",
    "docker create failed",
  ],
  ["", "engine-failed", "docker create failed: it exited with status 1."],
])("what the engine says is told with its meaning: %#", (stderr, id, message) => {
  const error = failure(stderr);
  expect(error.id as string).toBe(id);
  expect(error.message).toContain(message);
  expect(error.hint).toBeDefined();
});

test("a name that is taken is told apart", () => {
  const taken =
    'Error response from daemon: Conflict. The container name "/x" is already in use by container "0123".';
  expect(isNameTaken(failure(taken))).toBe(true);
  expect(isNameTaken(failure("Error response from daemon: no such image"))).toBe(false);
  expect(isNameTaken(new Error("is already in use by container"))).toBe(false);
});

test.each([
  [
    'Error: unable to connect to Podman socket: Get "http://d/v4.3.1/libpod/_ping": dial unix ///run/podman/podman.sock: connect: permission denied',
    "machine-not-set-up",
    "You may not use Podman on this computer",
    "sudo cluster-container",
  ],
  [
    'Cannot connect to Podman. Please verify your connection to the Linux system using `podman system connection list`, or try `podman machine init` and `podman machine start` to manage a new Linux VM\nError: unable to connect to Podman socket: Get "http://d/v4.3.1/libpod/_ping": dial unix ///nope.sock: connect: no such file or directory',
    "machine-not-set-up",
    "Podman does not answer: unable to connect to Podman socket",
    "podman machine start",
  ],
  [
    "Error: could not find free subnet from subnet pools",
    "capacity-lacking",
    "Podman has no free addresses",
    "podman network prune",
  ],
  [
    "Error: write /x: no space left on device",
    "capacity-lacking",
    "Podman's disk is full",
    "podman image prune",
  ],
  [
    'Error: could not find "netavark" in one of [/usr/lib/podman].  To resolve this error, set the helper_binaries_dir key in the `[engine]` section of containers.conf to the directory containing your helper binaries.',
    "machine-not-set-up",
    'Podman lacks a program that it needs: could not find "netavark"',
    "uidmap",
  ],
  [
    'Error: command required for rootless mode with multiple IDs: exec: "newuidmap": executable file not found in $PATH',
    "machine-not-set-up",
    "Podman lacks a program that it needs: command required for rootless mode",
    "uidmap",
  ],
  [
    'time="2026-01-01T00:00:00Z" level=warning msg="odd"\nError: runc: runc create failed: error setting rlimit type 7: operation not permitted: OCI permission denied\ntime="2026-01-01T00:00:00Z" level=warning msg="late"',
    "engine-failed",
    "podman create failed: runc: runc create failed: error setting rlimit type 7: operation not permitted: OCI permission denied.",
    "-vv",
  ],
])("what Podman says is told with its meaning: %#", (stderr, id, message, hint) => {
  const error = podmanFailure(stderr);
  expect(error.id as string).toBe(id);
  expect(error.message).toContain(message);
  expect(error.hint).toContain(hint);
});

test.each([
  'Error: creating container storage: the container name "cluster-e2e-x-master_0" is already in use by 1b846baf23f2. You have to remove that container to be able to reuse that name: that name is already in use',
  "Error: network name cluster-e2e-x-c1 already used: network already exists",
])("a name that Podman says is taken is told apart: %#", (stderr) => {
  expect(isNameTaken(podmanFailure(stderr))).toBe(true);
});

test.each([
  "Error: can only kill running containers. f21882d9a1df is in state exited: container state improper",
  "Error response from daemon: Cannot kill container: 0123: Container 0123 is not running",
])("a container that is off is not gone: %#", (stderr) => {
  expect([indicates(stderr, "off"), indicates(stderr, "gone")]).toEqual([true, false]);
});

test.each([
  [["cp", "-", "0123:/"], 'destination "0123:/" must be a directory'],
  [["start", "0123"], "Error response from daemon: network cluster-e2e-x-c1 not found"],
  [["start", "0123"], "Error response from daemon: No such container: 0123"],
])("what was removed while it was used may have been pruned: %j", (words, stderr) => {
  const { hint } = engineFailure(engineKinds.docker, words, { status: 1, stdout: "", stderr });
  expect(hint).toContain("docker system prune");
});

test.each([
  'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not exist: /a b.',
  "Error: statfs /a b: no such file or directory",
])("what an engine says of a folder that it can't mount is understood: %#", (stderr) => {
  expect(indicates(stderr, "noSource")).toBe(true);
});

test.each([
  "Error: inspecting object: no such container nope",
  'Error: no container with name or ID "nope" found: no such container',
  'Error: container "nope" does not exist',
  "Error: inspecting object: localhost/nope:1: image not known",
  "Error: inspecting object: network nope: unable to find network with name or ID nope: network not found",
])("what Podman says of things that are gone is understood: %#", (stderr) => {
  expect(indicates(stderr, "gone")).toBe(true);
});
