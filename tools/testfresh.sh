#!/bin/sh
# Runs README's two commands as on a fresh machine: in a clean clone of the commit, with empty
# HOME, Go caches and toolchains, beside a process that keeps a core busy. It records finished
# steps, so that an interrupted run continues where it was:
#
#	testfresh.sh [FOLDER]     FOLDER is kept for that; default: a folder in TMPDIR, per commit
#
# GOPROXY, PIP_INDEX_URL, NPM_CONFIG_REGISTRY and the like keep their values, so that a local
# mirror can serve the downloads.
set -eu

cd "$(dirname "$0")/.."
commit=$(git rev-parse HEAD)
place=${1:-${TMPDIR:-/tmp}/mlpromote-fresh-$(echo "$commit" | cut -c1-12)}
mkdir -p "$place"
place=$(cd "$place" && pwd)
if [ ! -d "$place/clone/.git" ]; then
	rm -rf "$place/clone"
	git clone -q . "$place/clone.new"
	git -C "$place/clone.new" checkout -q "$commit"
	mv "$place/clone.new" "$place/clone"
fi
mkdir -p "$place/home"

sh -c 'while :; do :; done' &
hog=$!
trap 'kill $hog 2>/dev/null || true' EXIT INT TERM

# fresh STEP COMMAND...: run it with nothing of this user's, unless it passed before.
fresh() {
	step=$1
	shift
	[ ! -e "$place/$step.passed" ] || {
		echo "test-fresh: $* passed before ($place)"
		return
	}
	began=$(date +%s)
	(
		cd "$place/clone"
		unset GOFLAGS GOCACHE GOMODCACHE GOPATH XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME MLPROMOTE_CACHE
		export HOME="$place/home"
		"$@"
	) || {
		echo "test-fresh: $* FAILED after $(($(date +%s) - began)) s; it stands in $place/clone" >&2
		exit 1
	}
	echo "$(($(date +%s) - began))" >"$place/$step.passed"
}

fresh demo make demo
fresh test make test
echo "test-fresh: make demo took $(cat "$place/demo.passed") s, make test $(cat "$place/test.passed") s, with empty caches beside a busy process"
