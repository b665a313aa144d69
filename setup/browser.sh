# shellcheck shell=bash disable=SC2154 # root, venv, tools and extras are setup.sh's
# A browser for the tests of a run's page: any chromium or chrome that is here, or Debian's. Without one they are skipped.

browser_works() {
    local browser
    for browser in "${PROFKIT_BROWSER:-}" chromium google-chrome google-chrome-stable chromium-browser \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        [ -z "$browser" ] || ! command -v "$browser" >/dev/null || return 0
    done
    return 1
}

find_browser() {
    local note=$venv/profkit-browser
    [ "$extras" = dev ] && [ ! -e "$note" ] || return 0
    # Only as root: it needs far more packages than perf does. Ubuntu's is a snap, which containers cannot start.
    if ! browser_works && as_root && may_use_apt; then
        refresh_lists
        if offered chromium; then install_packages chromium || true; fi
    fi
    browser_works || say "no chromium: the tests of a run's page in a browser will be skipped"
    : >"$note"
}
