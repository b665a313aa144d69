# shellcheck shell=bash disable=SC2154 # root, venv, tools and extras are setup.sh's
# OpenSSH's server for the tests of another machine: they start one of their own on the loopback, with keys of their own.
# Without one they are skipped.

sshd_works() { [ -x /usr/sbin/sshd ] || [ -x /usr/local/sbin/sshd ] || command -v sshd >/dev/null; }

find_sshd() {
    local note=$venv/profkit-sshd
    [ "$extras" = dev ] && [ ! -e "$note" ] || return 0
    # Only in a container: on a machine that boots, the package would be a service that listens to the network.
    if ! sshd_works && as_root && may_use_apt && [ ! -d /run/systemd/system ]; then
        refresh_lists
        if offered openssh-server; then install_unstarted openssh-server openssh-client || true; fi
    fi
    sshd_works || say "no sshd: the tests of another machine by ssh will be skipped"
    : >"$note"
}

# Debian starts a service when it is installed, unless this program says that it must not.
install_unstarted() {
    local policy=/usr/sbin/policy-rc.d made=
    if [ ! -e "$policy" ]; then
        made=yes
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod +x "$policy"
    fi
    local code=0
    install_packages "$@" || code=$?
    [ -z "$made" ] || rm -f "$policy"
    return "$code"
}
