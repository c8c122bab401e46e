#!/usr/bin/env bash
# Runs a verb. Environment: PROGRAM, STEP, ARGS with an argument in each line. The program writes the outputs.
set -euo pipefail

[[ -n $MLPROMOTE_REGISTRY ]] || unset MLPROMOTE_REGISTRY
args=()
while IFS= read -r line; do
  [[ -z $line ]] || args+=("$line")
done <<<"$ARGS"

if [[ $STEP == matrix ]]; then
  matrix=$("$PROGRAM" ci matrix "${args[@]}")
  echo "matrix=$matrix" >>"$GITHUB_OUTPUT" # one line of JSON
  exit 0
fi
exec "$PROGRAM" ci step "$STEP" "${args[@]}"
