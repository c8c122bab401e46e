#!/bin/sh
# Runs the whole job on examples/digits: build, verify, promote, resolve, pull, and a
# prediction from the pulled files by stock onnxruntime. Called by `make demo`.
set -eu
cd "$(dirname "$0")/digits"
mlpromote=${MLPROMOTE:-../../bin/mlpromote}

say() { printf '\n== %s\n' "$*" >&2; }

say "build: make every engine once, put the release into staging"
staging=$("$mlpromote" build)

say "verify: run every engine on this machine, compare with the reference"
"$mlpromote" verify >/dev/null

say "promote: move the proven release to prod, byte for byte"
prod=$("$mlpromote" promote)

say "resolve: which engine is right for this machine?"
engine=$("$mlpromote" resolve vision/digits --env prod --explain)

say "pull: verified before it is in place"
"$mlpromote" pull vision/digits --env prod -o pulled >/dev/null
"$mlpromote" trust pulled >&2

say "result"
"$mlpromote" inspect "$prod"
printf 'staging  %s\nprod     %s\n' "${staging#*@}" "${prod#*@}"
[ "${staging#*@}" = "${prod#*@}" ] || { echo "the digests differ" >&2; exit 1; }
printf 'resolved %s\n\n' "$engine"

# Stock onnxruntime, none of our code: only the files that were pulled.
python=$("$mlpromote" toolchain install onnxruntime --output json | python3 -c 'import json, sys; print(json.load(sys.stdin)["interpreter"])')
"$python" predict.py pulled cases/cases-00000.safetensors 7
