import { expect, test } from "bun:test";
import { connectionFailure } from "../../../../../src/backend/container/engine/connection-failure.ts";

const docker = { title: "Docker" };
const podman = { title: "Podman" };

/** As Docker 28.2 prints it. */
const overSsh = (status: number, lines: string): string =>
  `error during connect: Get "http://docker.example.com/v1.50/version": command [ssh -o ConnectTimeout=30 -T -l root -- there docker system dial-stdio] has exited with exit status ${status}, make sure the URL is valid, and Docker 18.09 or later is installed on the remote host: stderr=${lines}\n\n`;
const overTls = (reason: string): string =>
  `error during connect: Get "https://127.0.0.1:2376/v1.50/version": ${reason}`;
const refused =
  'the server probably has client authentication (--tlsverify) enabled; check your TLS client certification settings: Get "https://127.0.0.1:2376/v1.50/version": remote error: tls: bad certificate';
const expired =
  "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-11-29T16:22:17Z is after 2026-11-28T16:21:48Z";

test.each([
  [
    overSsh(255, "Host key verification failed."),
    "does not know the host key",
    "ssh-keygen -R",
    "Host key verification failed.",
  ],
  [
    overSsh(
      255,
      "@@@@@\n@ WARNING: UNPROTECTED PRIVATE KEY FILE! @\nroot@there: Permission denied (publickey).",
    ),
    "refuses the login",
    "ssh-add",
    "root@there: Permission denied (publickey).",
  ],
  [
    overSsh(127, "bash: line 1: docker: command not found"),
    "is missing on the computer behind SSH",
    "Install it there",
    "bash: line 1: docker: command not found",
  ],
  [
    overSsh(255, "kex_exchange_identification: Connection closed by remote host"),
    "SSH ends the connection",
    "MaxStartups",
    "kex_exchange_identification: Connection closed by remote host",
  ],
  [
    overSsh(255, "ssh: Could not resolve hostname there: Name or service not known"),
    "SSH does not reach Docker's computer",
    "Check the address",
    "ssh: Could not resolve hostname there: Name or service not known",
  ],
  [
    "Cannot connect to the Docker daemon at http://docker.example.com. Is the docker daemon running?",
    "does not answer on the computer behind SSH",
    "Start it there",
    "Cannot connect to the Docker daemon at http://docker.example.com. Is the docker daemon running?",
  ],
  [
    "Cannot connect to the Docker daemon at tcp://192.0.2.1:2375. Is the docker daemon running?",
    "does not answer at its address",
    "Start it on that computer",
    "Cannot connect to the Docker daemon at tcp://192.0.2.1:2375. Is the docker daemon running?",
  ],
  [
    "failed to connect to the docker API at tcp://192.0.2.1:2375: dial tcp 192.0.2.1:2375: connect: connection refused",
    "does not answer at its address",
    "Start it on that computer",
    "failed to connect to the docker API at tcp://192.0.2.1:2375: dial tcp 192.0.2.1:2375: connect: connection refused",
  ],
  [overTls(expired), "is not valid at this time", "Renew it", expired],
  [
    overTls(
      "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
    ),
    "is for another name or address",
    "subjectAltName",
    "x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs",
  ],
  [
    refused,
    "refuses this computer's certificate",
    "until when it is valid",
    "remote error: tls: bad certificate",
  ],
  [
    "Failed to initialize: unable to resolve docker endpoint: open /c/ca.pem: no such file or directory",
    "A certificate or key for Docker cannot be used",
    "ca.pem, cert.pem and key.pem",
    "open /c/ca.pem: no such file or directory",
  ],
  [
    "failed to retrieve context tls info: tls: private key does not match public key",
    "A certificate or key for Docker cannot be used",
    "belong together",
    "tls: private key does not match public key",
  ],
  [
    'unable to resolve docker endpoint: context "away" does not exist',
    "has no context of that name",
    "docker context ls",
    'context "away" does not exist',
  ],
  [
    "unable to resolve docker endpoint: Invalid bind address format: htp://127.0.0.1:1",
    "cannot be understood",
    "ssh://USER@HOST",
    "Invalid bind address format: htp://127.0.0.1:1",
  ],
  [
    overSsh(255, 'unix_listener: path "/long" too long for Unix domain socket'),
    "cannot share logins",
    "ControlMaster to no",
    'unix_listener: path "/long" too long for Unix domain socket',
  ],
  [
    overTls("dial tcp: lookup nowhere.invalid on 10.0.0.53:53: no such host"),
    "has no address",
    "Check the name",
    "dial tcp: lookup nowhere.invalid on 10.0.0.53:53: no such host",
  ],
])(
  "what Docker's program prints of a connection gets its remedy: %#",
  (stderr, what, hint, reason) => {
    const failure = connectionFailure(docker, stderr)!;
    expect(failure.what).toContain(what);
    expect(failure.hint).toContain(hint);
    expect(failure.reason).toBe(reason);
  },
);

test.each([
  'Failed to initialize: parse "ssh://a b@c": net/url: invalid userinfo',
  "ssh host connection is not valid: no host specified",
  "protocol not available",
  "panic: runtime error: invalid memory address or nil pointer dereference",
  'error during connect: Get "http://127.0.0.1:99999/v1.50/version": dial tcp: address 99999: invalid port',
  'error during connect: Get "http://unix:2375/var/run/docker.sock/v1.24/version": dial tcp: lookup unix on 10.0.0.53:53: no such host',
  "failed to connect to the docker API at tcp://unix:2375: lookup unix on 10.0.0.53:53: no such host",
  "Cannot connect to the Docker daemon at tcp://localhost:2375/var/run/docker.sock. Is the docker daemon running?",
])("an address that isn't one is named as the cause: %s", (stderr) => {
  const failure = connectionFailure(docker, stderr)!;
  expect(failure.what).toContain("cannot be understood");
  expect(failure.hint).toContain("unix:///var/run");
});

test.each([
  [
    "Error: failed to connect: ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey], no supported methods remain",
    "SSH refuses the login to Podman's computer",
  ],
  [
    "Error: failed to connect: ssh: handshake failed: knownhosts: key is unknown",
    "SSH does not know the host key of Podman's computer",
  ],
  [
    'Cannot connect to Podman. Please verify your connection\nError: unable to connect to Podman socket: Get "http://d/v4.3.1/libpod/_ping": ssh: rejected: connect failed (open failed)',
    "Podman does not answer on the computer behind SSH",
  ],
  [
    'Error: unable to create connection. "http" is not a supported schema',
    "The address of Podman cannot be understood",
  ],
  [
    'Error: value of CONTAINER_HOST is not a valid url: unix://a b: parse "unix://a b": invalid character " " in host name',
    "The address of Podman cannot be understood",
  ],
])("what Podman prints of a connection gets its remedy: %#", (stderr, what) => {
  expect(connectionFailure(podman, stderr)!.what).toContain(what);
});

test.each([
  'Error response from daemon: Get "https://registry/v2/": x509: certificate signed by unknown authority',
  "W: Failed to fetch https://there/: Host key verification failed.",
  "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
  "Error response from daemon: No such container: x",
  "error during connect: Get http://%2Fvar%2Frun%2Fdocker.sock/v1.24/version: read unix @->/var/run/docker.sock: connection reset by peer",
])("other failures are no connection's: %#", (stderr) => {
  expect(connectionFailure(docker, stderr)).toBeUndefined();
});
