#!/usr/bin/env bash
# Fetches the pinned chart library from npm's registry into this folder; what differs from its digests is refused.
#
#   assets/vendor/update.sh          fetch
#   assets/vendor/update.sh --check  only check that the files here are those
#
# For a newer version, change the version and the digests below and run the page's tests.
set -euo pipefail
cd "$(dirname "$0")"

version=1.6.32
package_sha256=4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d
files_sha256="19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f  uplot/uPlot.iife.min.js
df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04  uplot/uPlot.min.css
8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd  uplot/LICENSE"

if [[ "${1:-}" != --check ]]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    (cd "$work" && npm pack --silent "uplot@$version" >/dev/null)
    echo "$package_sha256  $work/uplot-$version.tgz" | sha256sum --check --quiet
    tar -xzf "$work/uplot-$version.tgz" -C "$work"
    mkdir -p uplot
    cp "$work"/package/dist/{uPlot.iife.min.js,uPlot.min.css} "$work/package/LICENSE" uplot/
fi
sha256sum --check --quiet <<<"$files_sha256"
echo "uPlot $version: as pinned"
