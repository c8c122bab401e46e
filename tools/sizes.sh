#!/bin/sh
# Prints how much building and testing downloaded and installed on this machine: the downloaded
# Go modules, and the installed toolchains. Fails if the program for nodes is larger than it may be.
set -eu

size() { # size FOLDER: in MiB
	if [ -d "$1" ]; then du -sm "$1" | cut -f1; else echo 0; fi
}
toolchains=${MLPROMOTE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/mlpromote}
echo "on this machine: $(size "$(go env GOMODCACHE)/cache/download") MiB of Go modules downloaded, $(size "$toolchains") MiB of toolchains and build steps in $toolchains"

limit=30 # MiB; cmd/mlpromote/nodeprogram_test.go has the same number
bytes=$(wc -c <bin/mlpromote-node)
echo "bin/mlpromote-node: $((bytes / 1048576)) MiB, at most $limit"
if [ "$bytes" -gt $((limit * 1048576)) ]; then
	echo 'bin/mlpromote-node is too large: see what it imports with go list -deps ./cmd/mlpromote-node' >&2
	exit 1
fi
