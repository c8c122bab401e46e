#!/usr/bin/env bash
# Finds the program, or downloads it and compares it with its checksum, and puts it into PATH of later steps.
# Environment: PROGRAM, or URL and SHA256. Output: program.
set -euo pipefail

# Errors of other programs quote inputs. None of what they say is a command to the runner; only who knows the random text ends that.
exec 2>&1
token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
failure=
end() {
  printf '\n::%s::\n' "$token"
  [[ -z $failure ]] || echo "::error title=mlpromote setup::$failure"
}
echo "::stop-commands::$token"
trap end EXIT

fail() {
  failure=$1
  exit 2
}

if [[ -n $PROGRAM ]]; then
  program=$(realpath -- "$PROGRAM") || fail "there is no file at the path of the input program"
elif [[ -n $URL ]]; then
  [[ $SHA256 =~ ^[0-9a-f]{64}$ ]] || fail "the input sha256 is missing or no SHA-256: what is downloaded is not run unchecked"
  folder=$(mktemp -d "${RUNNER_TEMP:-/tmp}/mlpromote.XXXXXX")
  curl --fail --silent --show-error --location --retry 3 --output "$folder/archive" -- "$URL" || fail "the archive cannot be downloaded"
  echo "$SHA256  $folder/archive" | sha256sum --check --quiet || fail "the archive is not the one of the input sha256"
  tar -xzf "$folder/archive" -C "$folder" mlpromote
  program=$folder/mlpromote
else
  program=$(command -v mlpromote) || fail "want the input program, or url and sha256: mlpromote is not in PATH"
fi
[[ -f $program && -x $program ]] || fail "the input program is no file that can be run"
[[ $program != *$'\n'* ]] || fail "the path of the program has several lines"

"$program" version
dirname -- "$program" >>"$GITHUB_PATH"
echo "program=$program" >>"$GITHUB_OUTPUT"
