#!/usr/bin/env bash
# Runs a verb. Environment: PROGRAM, STEP, ARGS with an argument in each line, REF, REASON. The program writes the outputs.
set -euo pipefail

case $STEP in
matrix | build | assemble | verify | promote | rollback) ;;
*)
  echo '::error title=mlpromote::the input step is none of setup, matrix, build, assemble, verify, promote and rollback'
  exit 2
  ;;
esac
[[ -n $MLPROMOTE_REGISTRY ]] || unset MLPROMOTE_REGISTRY
[[ -n ${MLPROMOTE_TOKEN_AUDIENCE-} ]] || unset MLPROMOTE_TOKEN_AUDIENCE
args=()
while IFS= read -r line; do
  [[ -z $line ]] || args+=("$line")
done <<<"$ARGS"
[[ -z ${REASON-} ]] || args+=("--reason=$REASON")
[[ -z ${REF-} ]] || args+=(-- "$REF") # what it holds is no flag

if [[ $STEP == matrix ]]; then
  # A refusal quotes lines of the spec. None of them is a command to the runner; only who knows the random text ends that.
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "::stop-commands::$token" >&2 # the stream of the refusal, so that the order is kept
  code=0
  matrix=$("$PROGRAM" ci matrix "${args[@]}") || code=$?
  printf '\n::%s::\n' "$token" >&2 # an end of line first, in case the last line has none
  [[ $code == 0 ]] || exit "$code"
  echo "matrix=$matrix" >>"$GITHUB_OUTPUT" # one line of JSON
  exit 0
fi
exec "$PROGRAM" ci step "$STEP" "${args[@]}"
