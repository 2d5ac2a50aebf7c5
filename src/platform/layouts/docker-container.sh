#!/bin/sh
# Sets up a container as a node with Docker. A function of prepare.sh, with confine-docker.sh; runs as root.

set_up_container() { confine_present_docker; }
