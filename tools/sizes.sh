#!/bin/sh
# Prints how much building and testing downloaded and installed on this machine: the downloaded
# Go modules, and the installed toolchains.
set -eu

size() { # size FOLDER: in MiB
	if [ -d "$1" ]; then du -sm "$1" | cut -f1; else echo 0; fi
}
toolchains=${MLPROMOTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mlpromote}
echo "on this machine: $(size "$(go env GOMODCACHE)/cache/download") MiB of Go modules downloaded, $(size "$toolchains") MiB of toolchains and build steps in $toolchains"
