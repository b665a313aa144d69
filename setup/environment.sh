# shellcheck shell=bash disable=SC2154 # root, venv, tools and extras are setup.sh's
# The virtual environment: which interpreter, pip on a Debian that has none, profkit itself.

oldest=10 # profkit needs Python 3.10

new_enough() { "$1" -c "import sys; sys.exit(sys.version_info < (3, $oldest))" 2>/dev/null; }

choose_interpreter() {
    local candidate
    python=
    if [ -n "${PYTHON:-}" ]; then
        command -v "$PYTHON" >/dev/null || stop 3 "PYTHON=$PYTHON is not there, or not executable"
        new_enough "$PYTHON" || stop 3 "PYTHON=$PYTHON is no Python 3.$oldest or newer, which profkit needs"
        python=$PYTHON
    else
        for candidate in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
            if command -v "$candidate" >/dev/null && new_enough "$candidate"; then
                python=$candidate
                break
            fi
        done
        [ -n "$python" ] || stop 3 "no Python 3.$oldest or newer found ($(python3 -V 2>&1 || true)); \
install one, or name it: PYTHON=/path/to/python3 ./setup.sh"
    fi
    python=$("$python" -c 'import sys; print(sys.executable)') # past shims, which follow the folder they are called in
}

asked_of_python() { "$python" -c "$1"; }

# What the environment was made from. The folder is in it since a virtual environment does not survive a move.
recipe() { printf '%s|%s|%s\n' "$root" "$(cksum <"$root/pyproject.toml")" "$1"; }

is_made() {
    local made
    [ -x "$venv/bin/python" ] && [ -r "$venv/profkit-setup" ] || return 1
    made=$(cat "$venv/profkit-setup")
    [ "$made" = "$(recipe "$extras")" ] || [ "$made" = "$(recipe dev)" ] || return 1
    # Only an interpreter that was asked for by name is looked at again.
    [ -z "${PYTHON:-}" ] || [ "$(cat "$venv/profkit-python" 2>/dev/null)" = "$(identity "$PYTHON")" ]
}

identity() { "$1" -c 'import sys; print(sys.base_prefix, sys.prefix, sys.version)' 2>/dev/null | tr '\n' ' '; }

make_environment() {
    is_made && return 0
    if [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1 && same_place; then
        say "using .venv ($("$venv/bin/python" -V))"
    else
        make_venv
    fi
    install_profkit
    recipe "$extras" >"$venv/profkit-setup"
}

# Whether .venv belongs to this folder and to the interpreter that was asked for.
same_place() {
    new_enough "$venv/bin/python" || return 1
    [ ! -e "$venv/profkit-python" ] && return 0 # the user's own
    grep -q "^$root|" "$venv/profkit-setup" 2>/dev/null || return 1
    [ -z "${PYTHON:-}" ] || [ "$(cat "$venv/profkit-python")" = "$(identity "$PYTHON")" ]
}

make_venv() {
    if [ -e "$venv" ] && [ ! -e "$venv/profkit-python" ]; then
        stop 3 "$venv is there, does not work, and was not made by setup.sh; move it away and call again"
    fi
    choose_interpreter
    rm -rf "$venv"
    mkdir -p "$venv"
    identity "$python" >"$venv/profkit-python" # first, so that a half-made environment is known as ours

    local version torch options=()
    version=$(asked_of_python 'import sys; print("%d.%d" % sys.version_info[:2])')
    if torch=$(asked_of_python 'from importlib import metadata; print(metadata.version("torch"))' 2>/dev/null); then
        say "torch $torch of $python is used as it is"
        options=(--system-site-packages)
    fi
    asked_of_python 'import ensurepip, venv' 2>/dev/null || get_ensurepip "$version"
    if asked_of_python 'import ensurepip, venv' 2>/dev/null; then
        try ".venv with Python $version" "$python" -m venv ${options[@]+"${options[@]}"} "$venv" ||
            stop 3 "the virtual environment could not be made"
    else
        try ".venv with Python $version" "$python" -m venv --without-pip ${options[@]+"${options[@]}"} "$venv" ||
            stop 3 "the virtual environment could not be made"
        get_pip
    fi
    if [ ${#options[@]} -gt 0 ]; then see_parent; fi
}

# An interpreter that is itself a virtual environment hides its packages from environments made with it.
see_parent() {
    local packages
    packages=$(asked_of_python 'import sys, sysconfig
if sys.prefix != sys.base_prefix: print(sysconfig.get_path("purelib"))')
    [ -z "$packages" ] ||
        printf '%s\n' "$packages" >"$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/profkit-parent.pth"
}

# Debian keeps ensurepip in a package of its own.
get_ensurepip() {
    if as_root && may_use_apt && refresh_lists; then
        install_packages "python$1-venv" || true
    fi
}

# pip without ensurepip: the interpreter's own pip, or the wheel in Debian's archive.
get_pip() {
    if asked_of_python 'import pip' 2>/dev/null &&
        try "pip into .venv" "$python" -m pip --python "$venv/bin/python" install --upgrade pip; then
        return 0
    fi
    local wheel=
    if may_use_apt && refresh_lists && try "pip from python3-pip-whl" fetch_pip_wheel; then
        wheel=$(find "$tools/usr/share/python-wheels" -name 'pip-*.whl' 2>/dev/null | head -n 1)
    fi
    [ -n "$wheel" ] || stop 3 "this Python has neither ensurepip nor pip, and none could be fetched; \
ask an administrator for: apt-get install python3-venv"
    try "pip into .venv" "$venv/bin/python" "$wheel/pip" install --no-index "$wheel" ||
        stop 3 "pip could not be installed into .venv"
}

fetch_pip_wheel() (
    mkdir -p "$tools/apt/pip" && cd "$tools/apt/pip" && private_apt download python3-pip-whl &&
        dpkg -x python3-pip-whl_*.deb "$tools"
)

in_venv() { "$venv/bin/python" -m "$@"; }

# A user's pip may be set to install into the home folder, which a virtual environment refuses.
pip_install() {
    PIP_USER=0 in_venv pip --disable-pip-version-check --no-input install "$@"
}

install_profkit() {
    local what=$root label="profkit and what it needs" constraints=$venv/profkit-constraints.txt
    if [ "$extras" = dev ]; then
        what="${root}[dev]"
        label="$label, with tests, lint and types"
    fi
    # Whatever is resolved below, the torch that is there stays.
    "$venv/bin/python" -c '
from importlib import metadata
try: print("torch==" + metadata.version("torch"))
except metadata.PackageNotFoundError: pass' >"$constraints"
    # pip before 23.2 downloads a whole package to read its name.
    if ! in_venv pip --version | awk '{split($2, v, "."); exit !(v[1] > 23 || v[1] == 23 && v[2] >= 2)}'; then
        try "newer pip" pip_install --upgrade pip || stop 3 "pip could not reach its package index"
    fi
    if [ "$extras" = dev ] && [ "${PROFKIT_LOCK:-1}" != 0 ]; then
        # Not compiled: few of their modules are imported, and each is compiled then.
        try "the packages of setup/locked.txt" \
            pip_install --no-compile --require-hashes -r "$root/setup/locked.txt" ||
            say "not all of them are to be had here; what pyproject.toml allows is installed instead, without hashes"
    fi
    # A plain path entry: setuptools' default import hook would add 10 ms to every start of this Python.
    try "$label" \
        pip_install -c "$constraints" --config-settings editable_mode=compat -e "$what" ||
        stop 3 "profkit could not be installed into .venv"
}
