#!/bin/sh
# Checks that this machine has what a build and its tests need. As root on a Debian
# system it installs what is missing; elsewhere it says what to install. With "test" as
# its argument it also installs what single tests want and are skipped without.
set -eu

cd "$(dirname "$0")/.."
missing=''
need() { missing="$missing $*"; }

command -v gcc >/dev/null 2>&1 || need gcc libc6-dev
if ! command -v python3 >/dev/null 2>&1; then
	need python3 python3-venv
elif ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
	need python3-venv
fi
command -v git >/dev/null 2>&1 || need git

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# wish PROGRAM: a Debian package of that name, for a test that is skipped without it.
wish() {
	command -v "$1" >/dev/null 2>&1 && return
	if can_install && apt-get update -qq </dev/null >&2 &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" </dev/null >&2; then
		return
	fi
	echo "setup: $1 (Debian's package name) is not here, so the tests with it are skipped" >&2
}
if [ "${1:-}" = test ]; then
	wish skopeo
	if ! command -v docker-registry >/dev/null 2>&1; then
		wish docker-registry
		# Debian starts what it installs; the test starts a registry of its own.
		systemctl disable --now docker-registry >/dev/null 2>&1 || true
	fi
fi

if [ -n "$missing" ]; then
	if ! can_install; then
		echo "setup: this machine lacks:$missing (Debian's package names)." >&2
		echo "setup: install them, for example: sudo apt-get install$missing" >&2
		exit 1
	fi
	echo "setup: installing$missing" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq </dev/null >&2
	# shellcheck disable=SC2086 # the list is words
	apt-get install -y -qq --no-install-recommends $missing </dev/null >&2
fi

# Debian's own Go is older than go.mod asks for, so it is not installed from there.
want=$(awk '$1 == "go" {print $2; exit}' go.mod)
if ! command -v go >/dev/null 2>&1; then
	echo "setup: no go on PATH: install Go $want or newer, see https://go.dev/doc/install" >&2
	exit 1
fi
if ! version=$(go env GOVERSION 2>&1); then
	echo "setup: go.mod wants Go $want or newer: $version" >&2
	exit 1
fi
