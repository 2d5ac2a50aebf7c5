import { expect, test } from "bun:test";
import { engineFailure, isNameTaken } from "../../../../src/backend/container/engine-errors.ts";

const failure = (stderr: string) => engineFailure("docker", ["create", "--name=x"], { status: 1, stdout: "", stderr });

test.each([
  [
    "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission denied",
    "machine-not-set-up",
    "You may not use Docker on this machine",
  ],
  [
    "Cannot connect to the Docker daemon at unix:///nope. Is the docker daemon running?",
    "machine-not-set-up",
    "Docker does not answer",
  ],
  [
    "Error response from daemon: could not find an available, non-overlapping IPv4 address pool among the defaults",
    "capacity-lacking",
    "no free addresses",
  ],
  ["Error response from daemon: write /var/lib/docker/x: no space left on device", "capacity-lacking", "disk is full"],
  [
    "Error response from daemon: OCI runtime create failed: no such cgroup\nError: failed to start containers: 0123",
    "engine-failed",
    "docker create failed: OCI runtime create failed: no such cgroup.",
  ],
  ["", "engine-failed", "docker create failed: it ended with status 1."],
])("what the engine says is told with its meaning: %#", (stderr, id, message) => {
  const error = failure(stderr);
  expect(error.id as string).toBe(id);
  expect(error.message).toContain(message);
  expect(error.hint).toBeDefined();
});

test("a name that is taken is told apart", () => {
  const taken = 'Error response from daemon: Conflict. The container name "/x" is already in use by container "0123".';
  expect(isNameTaken(failure(taken))).toBe(true);
  expect(isNameTaken(failure("Error response from daemon: no such image"))).toBe(false);
  expect(isNameTaken(new Error("is already in use by container"))).toBe(false);
});
