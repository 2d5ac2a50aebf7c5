#!/bin/sh
# In a container, systemd doesn't own the host's control groups. So Mesos must not request them from systemd, and
# Mesos and Docker must stay inside the container's own group, which a container restored from an image finds at
# another place. The user's own settings stay unchanged. A function for dcos-container.sh and dcos-image.sh; runs as
# root.
# shellcheck disable=SC2016 # the unit's shell expands these words

# The command of Docker's unit.
confine_docker() {
  mkdir -p /etc/systemd/system/docker.service.d
  {
    cat <<'CLUSTER_E2E_END'
[Unit]
After=ssh.service sshd.service

[Service]
ExecStart=
ExecStart=/bin/sh -c 'own=$$(sed -n "s/^[0-9]*:[^:]*memory[^:]*://p" /proc/1/cgroup | head -n 1); own=$${own%%/init.scope}; \
  grep -qs cgroup-parent /etc/docker/daemon.json || \
    set -- "$$@" --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "$${own%%/}/docker"; \
  exec "$$@"' docker \
CLUSTER_E2E_END
    printf '  %s\n' "$1"
  } >/etc/systemd/system/docker.service.d/cluster-e2e.conf
}
