#!/bin/sh
# Runs a verb of mlpromote as a step of a job of any CI system. All it reads are variables, as docs/how-to/other-ci.md says:
# MLPROMOTE_STEP, MLPROMOTE_ARGS, MLPROMOTE_REF, and MLPROMOTE_PROGRAM or MLPROMOTE_URL with MLPROMOTE_SHA256.
# What they hold is an argument of a program and never text of a script.
set -euf

fail() {
  printf 'mlpromote step: %s\n' "$1" >&2
  exit 2
}

case ${MLPROMOTE_STEP-} in
build | assemble | verify | promote | rollback) ;;
*) fail 'MLPROMOTE_STEP is none of build, assemble, verify, promote and rollback' ;;
esac

folder=
trap '[ -z "$folder" ] || rm -rf -- "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [ -n "${MLPROMOTE_PROGRAM-}" ]; then
  program=$MLPROMOTE_PROGRAM
elif [ -n "${MLPROMOTE_URL-}" ]; then
  want=${MLPROMOTE_SHA256-}
  case $want in *[!0-9a-f]*) want= ;; esac
  [ "${#want}" -eq 64 ] || fail 'MLPROMOTE_SHA256 is missing or no SHA-256: what is downloaded is not run unchecked'
  folder=$(mktemp -d)
  curl --fail --silent --show-error --location --retry 3 --output "$folder/archive" -- "$MLPROMOTE_URL" || fail 'the archive cannot be downloaded'
  got=$(sha256sum <"$folder/archive")
  [ "${got%% *}" = "$want" ] || fail 'the archive is not the one of MLPROMOTE_SHA256'
  tar -xzf "$folder/archive" -C "$folder" mlpromote
  program=$folder/mlpromote
else
  program=$(command -v mlpromote) || fail 'want MLPROMOTE_PROGRAM, or MLPROMOTE_URL and MLPROMOTE_SHA256: mlpromote is not in PATH'
fi
case $program in */*) ;; *) program=./$program ;; esac
if [ ! -f "$program" ] || [ ! -x "$program" ]; then
  fail 'MLPROMOTE_PROGRAM is no file that can be run'
fi

status=0
"$program" ci step || status=$? # the program reads the other variables itself
exit "$status"
