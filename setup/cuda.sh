# shellcheck shell=bash disable=SC2154 # venv is setup.sh's
# nvtx: the range that shows a workload's regions in nsys and ncu. Small, and of no use without an NVIDIA device.

add_nvtx() {
    local note=$venv/profkit-nvtx
    if [ -e "$note" ] || { [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; }; then return 0; fi # dxg: under WSL
    version_of nvtx >/dev/null || try nvtx pip_install nvtx ||
        say "no nvtx: regions are counted, but nsys and ncu will not show them by name"
    : >"$note"
}
