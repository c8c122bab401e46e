#!/bin/sh
# Checks the tree against the house rules. Every check runs, so that one run tells
# all that is wrong; the exit status is 0 only if all pass.
set -u

cd "$(dirname "$0")/.." || exit 1
if ! git rev-parse --git-dir >/dev/null 2>&1; then
	echo 'lint: this folder is no git checkout, so there is no list of its files' >&2
	exit 1
fi
failed=0
check() { # check TITLE COMMAND...: a command fails by its status or by printing
	title=$1
	shift
	if ! found=$("$@" 2>&1) || [ -n "$found" ]; then
		printf 'lint: %s\n%s\n\n' "$title" "$found" >&2
		failed=1
	fi
}
# Files that belong to the repository, also before they are added; none if deleted.
files() {
	git ls-files --cached --others --exclude-standard -- "$@" | sort -u | while IFS= read -r f; do
		[ ! -f "$f" ] || printf '%s\n' "$f"
	done
}
each() { # each PATTERNS -- COMMAND...: the command with the files as arguments
	patterns=''
	while [ "$1" != -- ]; do
		patterns="$patterns $1"
		shift
	done
	shift
	set -f
	# shellcheck disable=SC2086 # patterns are words, for git to expand
	files $patterns | tr '\n' '\0' | xargs -0 -r "$@"
	set +f
}

# On a machine that never built it, go also tells what it downloads; that is no finding.
vet() {
	told=$(go vet ./... 2>&1) && return
	printf '%s\n' "$told" | grep -v '^go: downloading '
	return 1
}
# With -e, since tidy also wants modules that only the tests of dependencies need, and a
# module that a proxy does not have is no fault of go.mod. Standard error tells downloads.
tidy() {
	go mod tidy -e -diff 2>/dev/null
}
scripts() {
	each '*.sh' '.ci/run' -- sh -c 'for f; do
		case $(head -n 1 "$f") in
		*bash*) bash -n "$f" ;;
		*) sh -n "$f" ;;
		esac
	done' scripts
}
python() {
	each '*.py' -- python3 -c 'import ast, sys
for path in sys.argv[1:]:
    with open(path, "rb") as f:
        ast.parse(f.read(), path)'
}
# A lock file pins what, by hash; from where is the business of who installs it.
addresses() {
	each '*.lock' '*lock*.txt' '*requirements*.txt' '*lock*.json' -- \
		grep -nHE '(https?|git\+[a-z]+)://|^ *(--index-url|--extra-index-url|--find-links|-i |-f )' || true
}
long() {
	each '*.go' '*.py' '*.sh' -- awk 'FNR == 1 {generated = 0}
		/^(\/\/|#) Code generated .* DO NOT EDIT\.$/ {generated = 1}
		FNR == 700 && !generated {print FILENAME ": 700 lines or more: does it still hold one noun?"}'
}
# docs/dependencies.md has one line per module that go.mod requires directly.
dependencies() {
	go mod edit -json | python3 -c 'import json, re, sys
required = {r["Path"] for r in json.load(sys.stdin)["Require"] or [] if not r.get("Indirect")}
with open("docs/dependencies.md") as f:
    told = set(re.findall(r"^\| `([^`]+)` \|", f.read(), re.M))
for path in sorted(required - told):
    print(path + ": add a line to docs/dependencies.md: its job, why this one, its licence")'
}

check 'not formatted, run gofmt -w on' each '*.go' -- gofmt -l
check 'go vet' vet
check 'go.mod is not tidy, run go mod tidy -e' tidy
check 'shell scripts that do not parse' scripts
check 'Python files that do not parse' python
check 'lock files with download addresses' addresses
check 'files that are too long' long
check 'dependencies without a reason' dependencies

# Print also when they find nothing.
go run ./tools/ruler >&2 || failed=1
if ! go tool -modfile=tools/golangci-lint/go.mod golangci-lint run ./... >&2; then
	failed=1
fi
[ "$failed" = 0 ] && echo 'lint: nothing found'
exit "$failed"
