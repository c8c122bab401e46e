#!/bin/sh
# Writes format-1.tar.gz anew, the data directory that script/format_1.txtar reads: two releases of examples/digits, both
# promoted, and a rollback that holds prod at the first. Its signing key is not kept. Needs bin/mlpromote.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mlpromote=${MLPROMOTE:-$here/../../../bin/mlpromote}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/../../../examples/digits" "$work/digits"
cd "$work/digits"
export MLPROMOTE_DATA="$work/data" COSIGN_PASSWORD=sample
sed -i 's|^  - linux/amd64/v3.*||' mlpromote.yaml
for version in 1.0.0 1.1.0; do
	sed -i "s|^version: .*|version: $version|" mlpromote.yaml
	"$mlpromote" build
	"$mlpromote" verify
	"$mlpromote" promote
done
"$mlpromote" rollback vision/digits --env prod --reason "to keep a rollback in the sample"
"$mlpromote" history verify
rm -f "$MLPROMOTE_DATA"/keys/*.key
find "$MLPROMOTE_DATA" | grep -v /blobs/
tar -czf "$here/format-1.tar.gz" --owner=0 --group=0 --exclude=./incoming --exclude=./lock -C "$MLPROMOTE_DATA" .
