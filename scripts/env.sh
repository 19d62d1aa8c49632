# Sourced by the scripts beside it: where things are, what is on PATH, and a few helpers.
# Nothing in here may run slowly, since every script pays for it.
# shellcheck shell=bash disable=SC2034

# With it cd may go elsewhere, and says where it went.
unset CDPATH
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TOOLS=${LAPIDARY_TOOLS:-${XDG_CACHE_HOME:-$HOME/.cache}/lapidary}

step() { printf '==> %s\n' "$*"; }
note() { printf 'note: %s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# usage: print the comment block at the top of a script, which is its --help.
usage() { awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"; }

on_ci() { [ "${CI:-}" = true ]; }
# What is built once need not be prepared for being built again.
if on_ci; then export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}; fi

# The CLI writes the glue that the crate's own wasm-bindgen expects, so their versions must be equal.
WASM_PACK_VERSION=0.15.1
WASM_BINDGEN_VERSION=
if [ -f "$ROOT/Cargo.lock" ]; then
    WASM_BINDGEN_VERSION=$(awk '
        $1 == "name" { found = ($3 == "\"wasm-bindgen\"") }
        $1 == "version" && found { gsub(/"/, "", $3); print $3; exit }' "$ROOT/Cargo.lock")
fi

PATH=$TOOLS/wasm-bindgen-$WASM_BINDGEN_VERSION/bin:$TOOLS/wasm-pack-$WASM_PACK_VERSION/bin:$PATH
PATH=$ROOT/scripts/node_modules/.bin:$PATH
export PATH

# Where cargo puts what it builds, which its own configuration may say too.
target_folder() {
    cargo metadata --no-deps --format-version 1 --manifest-path "$ROOT/Cargo.toml" | node -p 'JSON.parse(require("fs").readFileSync(0, "utf8")).target_directory'
}

# has_version TOOL VERSION: whether PATH has exactly that one.
has_version() { have "$1" && [ "$("$1" --version 2>/dev/null | awk '{ print $2; exit }')" = "$2" ]; }

# Loading std is what fails where the target is missing or was built by another compiler.
has_target() {
    (cd "$ROOT" && echo 'fn main() {}' | rustc --target "$1" --emit=dep-info -o - - >/dev/null 2>&1)
}
has_wasm_target() { has_target wasm32-unknown-unknown; }

has_pip() { have python3 && python3 -m pip --version >/dev/null 2>&1; }

# pip_install FOLDER PACKAGE...: packages of Python's, without what they depend on; the folder is there as a whole or not at all.
pip_install() {
    local folder=$1 part
    shift
    has_pip || die "Python's pip is missing: install Python 3.8 or later with it (on Debian and Ubuntu: python3-pip)."
    step "pip install $*"
    mkdir -p "${folder%/*}"
    part=$(mktemp -d "$folder.XXXXXX")
    python3 -m pip install --quiet --no-deps --target "$part" "$@" || { rm -rf "$part"; die "pip could not install them"; }
    rm -rf "$folder"
    mv "$part" "$folder"
}

# first COMMAND-OR-PATH...: the path of the first that can be run.
first() {
    local name
    for name in "$@"; do
        command -v "$name" 2>/dev/null && return 0
    done
    return 0
}

find_browser() {
    CHROME=${CHROME:-$(first google-chrome google-chrome-stable chromium chromium-browser \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
        "/Applications/Chromium.app/Contents/MacOS/Chromium")}
    export CHROME
}
find_browser

has_vulkan_validation() { [ -f /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]; }

# The Vulkan driver for the CPU that comes with Debian's Chromium: its file for the loader, or nothing.
find_swiftshader() {
    local icd=/usr/lib/chromium/vk_swiftshader_icd.json
    if [ -f "$icd" ]; then echo "$icd"; fi
}

# Mesa's Vulkan driver for the CPU: its file for the loader, or nothing.
find_lavapipe() {
    local folder name
    for folder in /usr/share/vulkan/icd.d /etc/vulkan/icd.d; do
        # Those of other machines' code may stand beside it.
        for name in "lvp_icd.$(uname -m).json" lvp_icd.json; do
            if [ -f "$folder/$name" ]; then echo "$folder/$name"; return; fi
        done
    done
}
