# shellcheck shell=bash disable=SC2154 # root, venv, tools and extras are setup.sh's
# torch: used where it is, installed where it is small, and never replaced.

torch_release=2.13.0 # what the workloads were tried with
triton_release=3.7.1 # the one that torch release was built with

version_of() { "$venv/bin/python" -c "from importlib import metadata; print(metadata.version('$1'))" 2>/dev/null; }

# The build that pip would install, when it brings none of CUDA's packages (gigabytes that a CPU never loads).
cpu_build() {
    pip_install --quiet --dry-run --report - "torch==$torch_release" 2>/dev/null </dev/null | "$venv/bin/python" -c '
import json, sys
try:
    names = [item["metadata"]["name"].lower() for item in json.load(sys.stdin)["install"]]
except ValueError:
    sys.exit("no build of torch for this Python")
if any(name.startswith(("nvidia-", "cuda-")) for name in names):
    sys.exit("the build on offer brings CUDA packages of some gigabytes")' 2>&1
}

add_torch() {
    local reason note=$venv/profkit-torch
    if [ "${PROFKIT_TORCH:-auto}" = 0 ] || { [ -e "$note" ] && [ "${PROFKIT_TORCH:-auto}" = auto ]; }; then
        return 0
    fi
    if version_of torch >/dev/null; then
        : >"$note"
        return 0
    fi
    if [ "${PROFKIT_TORCH:-auto}" = 1 ]; then
        try "torch $torch_release" pip_install "torch==$torch_release" || stop 3 "torch could not be installed"
    else
        say "torch is not here; looking for a build without CUDA packages"
        if reason=$(cpu_build); then
            # On macOS it is the build with MPS: there is one for all Macs.
            try "torch $torch_release (without CUDA)" pip_install "torch==$torch_release" || return 0
        else
            say "torch is left out: ${reason##*$'\n'}. The workloads use NumPy. To have it: PROFKIT_TORCH=1 ./setup.sh"
        fi
    fi
    : >"$note"
}

# For the tests only: Triton kernels run on the CPU in Triton's interpreter. A torch without CUDA comes without it.
add_triton() {
    local torch note=$venv/profkit-triton
    if [ "$extras" != dev ] || [ -e "$note" ] || [ "$(uname -sm)" != "Linux x86_64" ]; then return 0; fi
    torch=$(version_of torch) || return 0 # it may come later
    case $torch in
        "$torch_release"*)
            version_of triton >/dev/null ||
                try "triton $triton_release" pip_install --no-deps "triton==$triton_release" ||
                say "no triton: the tests of its kernels will be skipped"
            ;;
    esac
    : >"$note"
}
