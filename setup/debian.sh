# shellcheck shell=bash disable=SC2154 # root, venv, tools and extras are setup.sh's
# Debian packages, installed as root or unpacked into .tools/ without it.

as_root() { [ "$(id -u)" -eq 0 ]; }

may_use_apt() { [ "${PROFKIT_APT:-1}" != 0 ] && command -v apt-get >/dev/null && command -v dpkg >/dev/null; }

# apt-get with package lists of our own, so that it works without root and leaves the system's lists alone.
private_apt() {
    local apt=$tools/apt
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    apt-get -q -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1 "$@"
}

# Once per run of setup. One source that fails among others is no reason to stop: what is missing shows at the install.
refresh_lists() {
    [ -z "${lists_are_fresh:-}" ] || return 0
    lists_are_fresh=yes
    if as_root; then
        try "apt-get update" apt-get -q update || true
    else
        try "package lists (without root, in .tools)" private_apt update || true
    fi
}

# offered PACKAGE: whether this system's archive has it. Fresh lists first.
offered() {
    if as_root; then
        apt-get -q -s install --no-install-recommends "$1" >/dev/null 2>&1
    else
        private_apt -s install --no-install-recommends "$1" >/dev/null 2>&1
    fi
}

install_packages() {
    try "apt-get install $*" env DEBIAN_FRONTEND=noninteractive \
        apt-get -q install -y --no-install-recommends "$@"
}

# What installing the packages would add, one name a line. What the system has in an older version stays as it is:
# it cannot be replaced without root, and libc least of all.
missing_packages() {
    private_apt -s install --no-install-recommends "$@" | sed -n 's/^Inst \([^ ]*\) (.*/\1/p'
}

download_and_unpack() {
    local names archive
    names=$(missing_packages "$@") || return 1
    [ -n "$names" ] || return 0
    (
        mkdir -p "$tools/apt/packages"
        cd "$tools/apt/packages"
        # shellcheck disable=SC2086  # one word per package is meant
        private_apt download $names
    ) || return 1
    for archive in "$tools"/apt/packages/*.deb; do
        dpkg -x "$archive" "$tools" || return 1
    done
    rm -rf "$tools/apt/packages"
}

unpack_packages() {
    try "unpacking $* into .tools (without root)" download_and_unpack "$@"
}
