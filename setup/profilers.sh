# shellcheck shell=bash disable=SC2154 # root, venv, tools and extras are setup.sh's
# perf and valgrind: found, installed (root) or unpacked under .tools/ (no root); on macOS xctrace is looked for instead.
# profkit works without them, with less.

perf_works() {
    local perf
    # Ubuntu's perf is a wrapper that fails for a kernel it does not know; profkit then takes the one beside it.
    for perf in "$venv/bin/perf" perf /usr/lib/linux-tools*/*/perf /usr/lib/linux-tools*/perf; do
        "$perf" --version >/dev/null 2>&1 && return 0
    done
    return 1
}
valgrind_works() { PATH=$venv/bin:$PATH valgrind --tool=none true >/dev/null 2>&1; }

on_a_mac() { [ "$(uname -s)" = Darwin ]; }

# Xcode is the App Store's to install; what is missing is said.
find_xctrace() {
    local developer
    if xcrun --find xctrace >/dev/null 2>&1; then return 0; fi
    developer=$(xcode-select -p 2>/dev/null || echo none)
    say "no xctrace (developer tools: $developer): no traces and no counters. It is a part of Xcode, not of the command"
    say "line tools: install Xcode, open it once, sudo xcode-select -s /Applications/Xcode.app/Contents/Developer"
}

find_profilers() {
    local note=$venv/profkit-profilers
    [ -e "$note" ] && return 0
    if on_a_mac; then
        find_xctrace
        : >"$note"
        return 0
    fi
    if [ "$(uname -s)" = Linux ] && may_use_apt; then
        perf_works || get_perf
        valgrind_works || get_valgrind
    fi
    perf_works || say "no perf: where time goes by function, and hardware counters, will be missing"
    valgrind_works || say "no valgrind: caches and branches cannot be simulated where hardware counters are absent"
    rm -rf "$tools/apt"
    : >"$note"
}

get_perf() {
    local package
    refresh_lists
    for package in linux-perf linux-tools-generic; do # Debian's name, Ubuntu's name
        offered "$package" || continue
        if as_root; then
            install_packages "$package" || true
        elif unpack_packages "$package"; then
            launch_perf
        fi
        return 0
    done
}

get_valgrind() {
    refresh_lists
    offered valgrind || return 0
    if as_root; then
        install_packages valgrind || true
        return 0
    fi
    # valgrind needs the symbols of the very libc it runs on, which may be older than the archive's newest.
    local symbols
    symbols=libc6-dbg=$(dpkg-query -W -f '${Version}' libc6)
    offered "$symbols" || symbols=
    if unpack_packages valgrind ${symbols:+"$symbols"}; then launch_valgrind; fi
}

first_of() {
    local path
    for path in "$@"; do
        if [ -e "$path" ]; then
            printf '%s\n' "$path"
            break
        fi
    done
}

# Through the loader and not with LD_LIBRARY_PATH, which the workload would inherit.
launch_perf() {
    local binary loader folder libraries=
    binary=$(first_of "$tools"/usr/bin/perf "$tools"/usr/lib/linux-tools*/perf "$tools"/usr/lib/linux-tools/*/perf)
    [ -n "$binary" ] || return 0
    for loader in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do
        [ -x "$loader" ] && break
    done
    for folder in "$tools"/usr/lib/*-linux-gnu* "$tools"/lib/*-linux-gnu*; do
        if [ -d "$folder" ]; then libraries=$libraries${libraries:+:}$folder; fi
    done
    write_launcher perf "exec '$loader' --library-path '$libraries' '$binary' \"\$@\""
}

launch_valgrind() {
    local home
    home=$(first_of "$tools/usr/libexec/valgrind" "$tools/usr/lib/valgrind" "$tools"/usr/lib/*/valgrind)
    [ -n "$home" ] || return 0
    write_launcher valgrind "export VALGRIND_LIB='$home'
export VALGRIND_OPTS=\"--extra-debuginfo-path=$tools/usr/lib/debug \${VALGRIND_OPTS:-}\"
exec '$tools/usr/bin/valgrind.bin' \"\$@\""
}

write_launcher() {
    printf '#!/bin/sh\n# Written by setup.sh: %s as unpacked into .tools without root.\n%s\n' "$1" "$2" >"$venv/bin/$1"
    chmod +x "$venv/bin/$1"
}
