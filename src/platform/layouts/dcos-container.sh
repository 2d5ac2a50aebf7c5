#!/bin/sh
# Sets up a container as a node of DC/OS: Mesos must not request control groups from systemd either, and must stay inside
# the container's own group; see confine-docker.sh. A function of prepare.sh, with confine-docker.sh; runs as root.

set_up_container() {
  own=$(sed -n 's/^[0-9]*:[^:]*memory[^:]*://p' /proc/1/cgroup | head -n 1)
  own=${own%/init.scope}
  own=${own%/}
  mkdir -p /var/lib/dcos
  touch /var/lib/dcos/mesos-slave-common
  chmod 644 /var/lib/dcos/mesos-slave-common
  set_for_mesos() {
    grep -q "^$1=" /var/lib/dcos/mesos-slave-common || echo "$1=$2" >>/var/lib/dcos/mesos-slave-common
  }
  set_for_mesos MESOS_SYSTEMD_ENABLE_SUPPORT false
  root=$own/mesos
  set_for_mesos MESOS_CGROUPS_ROOT "${root#/}"
  confine_present_docker
}
