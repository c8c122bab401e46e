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

if [ "${1:-}" = test ] && ! command -v docker-registry >/dev/null 2>&1; then
	# Debian starts what it installs; the test starts a registry of its own.
	if can_install && apt-get update -qq </dev/null >&2 &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker-registry </dev/null >&2; then
		systemctl disable --now docker-registry >/dev/null 2>&1 || true
	else
		echo "setup: docker-registry (Debian's package name) is not here, so the test against it is skipped" >&2
	fi
fi

if [ "${1:-}" = test ] && ! command -v initdb >/dev/null 2>&1 && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
	# Debian would make a database and start it; tests start servers of their own.
	if ! { can_install && apt-get update -qq </dev/null >&2 &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-common </dev/null >&2 &&
		sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql </dev/null >&2; }; then
		echo "setup: postgresql (Debian's package name) is not here, so the tests on PostgreSQL are skipped" >&2
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
