/**
 * Returns a configuration for `curl --config -`. A URL can be a secret, so it travels by stdin, which no process list shows. All options work with
 * curl 7.29 (CentOS 7).
 */
export function curlConfig(url: string): string {
  // The downloaded file runs as root, so no redirect may lead from https to http.
  const redirects = url.startsWith("https:") ? "=https" : "=http,https";
  return [
    `url = "${url.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`,
    "globoff",
    "fail",
    "silent",
    "show-error",
    "location",
    `proto-redir = "${redirects}"`,
    "max-redirs = 10",
    "connect-timeout = 10",
    // Less than 1 KB/s for half a minute counts as cut off.
    "speed-limit = 1000",
    "speed-time = 30",
    "retry = 2",
    "retry-delay = 2",
    "",
  ].join("\n");
}
