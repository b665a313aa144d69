# shellcheck shell=bash disable=SC2154 # root, venv, tools and extras are setup.sh's
# A browser for the tests of a run's page: any chromium or chrome that is here, or Debian's, and what its driver needs.
# Without them they are skipped.

browser_works() {
    local browser
    for browser in "${PROFKIT_BROWSER:-}" chromium google-chrome google-chrome-stable chromium-browser \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
        [ -z "$browser" ] || ! command -v "$browser" >/dev/null || return 0
    done
    return 1
}

# The driver is a node of playwright's own, which needs a library that a small Debian lacks.
driver_works() { "$venv/bin/python" -m playwright --version >/dev/null 2>&1; }

find_browser() {
    local note=$venv/profkit-browser
    [ "$extras" = dev ] && [ ! -e "$note" ] || return 0
    # Only as root: it needs far more packages than perf does. Ubuntu's is a snap, which containers cannot start.
    if as_root && may_use_apt; then
        if ! browser_works && refresh_lists && offered chromium; then install_packages chromium || true; fi
        if ! driver_works && refresh_lists && offered libatomic1; then install_packages libatomic1 || true; fi
    fi
    browser_works || say "no chromium: the tests of a run's page in a browser will be skipped"
    driver_works || say "playwright's driver does not start (libatomic1?): these tests will be skipped"
    : >"$note"
}
