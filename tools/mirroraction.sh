#!/bin/sh
# Writes the repository that a marketplace of actions lists, into DIR: the action at its root, and no workflows, which such a
# repository may not have. What is there and is not of the action stays.
set -eu

[ $# -eq 1 ] && [ -n "$1" ] || { echo 'usage: mirroraction.sh DIR' >&2; exit 2; }
cd "$(dirname "$0")/.."
case $1 in /*) to=$1 ;; *) to=${OLDPWD:-.}/$1 ;; esac
if [ -e "$to/.github/workflows" ]; then
	echo "mirroraction: $to/.github/workflows is there: a listed repository has no workflows" >&2
	exit 1
fi
mkdir -p "$to"
for file in action.yml setup.sh run.sh comment.sh; do
	cp "ci/github/$file" "$to/$file"
done
cp LICENSE "$to/LICENSE"
sed -e 's|uses: ./ci/github$|uses: OWNER/mlpromote-action@COMMIT|' \
	-e 's|^Copy the folder .*|Name the action by the commit of a release.|' \
	-e 's|\[\([^]]*\)\]([^)]*)|\1|g' -e 's|ci/github/comment.sh|comment.sh|' docs/how-to/github.md >"$to/README.md"
echo "$to"
