import { expect, test } from "bun:test";
import {
  environmentWithoutSecrets,
  isForDesktop,
  minimalEnvironment,
} from "../../../../src/system/processes/run-program.ts";

const environment = {
  PATH: "/bin",
  HOME: "/root",
  LC_ALL: "C",
  TMPDIR: "/tmp",
  LD_LIBRARY_PATH: "/opt/lib",
  DOCKER_HOST: "unix:///socket",
  AWS_SECRET_ACCESS_KEY: "aws",
  CLOUD_SECRET_ACCESS_KEY: "cloud",
  GITHUB_TOKEN: "token",
  BUN_OPTIONS: "--preload=evil.ts",
  BUN_BE_BUN: "1",
  BUN_INSPECT: "ws://127.0.0.1:1/x",
  LD_PRELOAD: "evil.so",
};

test("a program that works for us alone gets what it needs to run, and nothing of the user's", () => {
  expect(Object.keys(minimalEnvironment(environment)).toSorted()).toEqual([
    "HOME",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "TMPDIR",
  ]);
});

test("no program and no library is looked for in the current folder, whatever PATH says", () => {
  const searched = { PATH: ".:/usr/bin::bin:/bin:", LD_LIBRARY_PATH: ":", HOME: "." };
  for (const reduced of [minimalEnvironment, environmentWithoutSecrets])
    expect(reduced(searched)).toEqual({ PATH: "/usr/bin:/bin", HOME: "." });
});

test("a container engine keeps the user's settings and registry logins, and gets nothing of ours", () => {
  const kept = environmentWithoutSecrets(environment);
  expect(kept).toMatchObject({ DOCKER_HOST: "unix:///socket", AWS_SECRET_ACCESS_KEY: "aws" });
  expect(Object.keys(kept).filter((name) => /^(CLOUD|BUN)_/.test(name))).toEqual([]);
});

test("a browser gets what it needs to appear, and no credentials", () => {
  const needed = [
    "PATH",
    "DISPLAY",
    "XDG_RUNTIME_DIR",
    "https_proxy",
    "NO_PROXY",
    "WSL_DISTRO_NAME",
    "SSH_TTY",
  ];
  const others = [
    "AWS_PROFILE",
    "GITHUB_TOKEN",
    "SSH_AUTH_SOCK",
    "MY_DISPLAY",
    "FTP_PROXY",
    "BUN_OPTIONS",
  ];
  expect([...needed, ...others].filter(isForDesktop)).toEqual(needed);
});
