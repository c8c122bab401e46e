#!/bin/sh
# Checks that this machine has what a build and its tests need. As root on a Debian
# system it installs what is missing; elsewhere it says what to install. With "test" as
# its argument it also installs what single tests want and are skipped without, with
# "bench" the servers that `make bench-registry` measures beside ours, with "torch" what
# the architectures of `make test-large` are exported by, with "kubernetes" what a cluster
# for tests is made of besides Go programs.
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

apt_install() {
	can_install && apt-get update -qq </dev/null >&2 &&
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >&2
}

# server NAME: install a package that is a server, unless it is there. Debian starts what
# it installs; tests and measurements start one of their own.
server() {
	[ ! -x "/usr/bin/$1" ] && [ ! -x "/usr/sbin/$1" ] || return 0
	apt_install "$1" || return 1
	systemctl disable --now "$1" >/dev/null 2>&1 || true
}

# postgresql: the same, but Debian would make a database as well, and start that.
postgresql() {
	command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && return 0
	apt_install postgresql-common &&
		sed -i 's/^#*create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
		apt_install postgresql
}

skipped() { echo "setup: $1 (Debian's package name) is not here, so the tests with it are skipped" >&2; }

case ${1:-} in
test)
	command -v skopeo >/dev/null 2>&1 || apt_install skopeo || skipped skopeo
	server docker-registry || skipped docker-registry
	# Of OpenCV, which the converter of the toolchain litert imports.
	ldconfig -p | grep -q 'libGL\.so\.1' || apt_install libgl1 || skipped libgl1
	postgresql || skipped postgresql
	command -v chromium >/dev/null 2>&1 || apt_install chromium || skipped chromium
	command -v softhsm2-util >/dev/null 2>&1 && command -v pkcs11-tool >/dev/null 2>&1 || apt_install softhsm2 opensc ||
		skipped 'softhsm2, or opensc,'
	;;
browser)
	command -v chromium >/dev/null 2>&1 || apt_install chromium || { echo 'setup: chromium (on Debian: apt-get install chromium) is not here' >&2; exit 1; }
	;;
torch)
	/usr/bin/python3 -c 'import torch, torchvision, venv' 2>/dev/null || apt_install python3-torch python3-torchvision python3-venv ||
		skipped 'python3-torch, or python3-torchvision,'
	;;
kubernetes)
	packages=''
	[ -x /bin/busybox ] || packages="$packages busybox-static" # the file system of pods
	[ -f /usr/include/seccomp.h ] && command -v pkg-config >/dev/null 2>&1 || packages="$packages libseccomp-dev pkg-config"
	command -v ip >/dev/null 2>&1 || packages="$packages iproute2"
	command -v nft >/dev/null 2>&1 || packages="$packages nftables" # of kube-proxy
	# shellcheck disable=SC2086 # the list is words
	[ -z "$packages" ] || apt_install $packages || { echo "setup: this machine lacks:$packages (Debian's package names)" >&2; exit 1; }
	[ "$(id -u)" = 0 ] || { echo 'setup: a cluster takes root: containers, mounts and a network of its own' >&2; exit 1; }
	;;
bench)
	for name in docker-registry nginx; do
		server "$name" && continue
		echo "setup: this machine lacks $name (Debian's package name), which is measured beside ours: install it" >&2
		exit 1
	done
	;;
esac

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
