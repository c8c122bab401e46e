#!/usr/bin/env bash
# Writes a report into the one comment of a pull request that it is for, and edits that comment later.
# Environment: BODY, the file that `mlpromote ci report` wrote; GITHUB_TOKEN, which may write to pull requests; NUMBER of the pull
# request, or HEAD_OWNER and HEAD_BRANCH, which name it; GITHUB_API_URL and GITHUB_REPOSITORY, which a job has.
set -euo pipefail

fail() {
  echo "::error title=mlpromote comment::$1"
  exit 2
}

# api METHOD PATH [ARG...]: the token is no argument, which every user of the machine could see.
api() {
  local method=$1 path=$2
  shift 2
  curl --fail --silent --show-error --retry 3 --config <(printf 'header = "Authorization: Bearer %s"\n' "$GITHUB_TOKEN") \
    --header 'Accept: application/vnd.github+json' --request "$method" "$@" -- "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY$path"
}

IFS= read -r marker <"$BODY" || fail "the report is empty"
[[ $marker =~ ^'<!-- mlpromote '[A-Za-z0-9._/\ -]*' -->'$ ]] || fail "the file does not begin as a report of mlpromote does"
[[ $(wc -c <"$BODY") -le 65536 ]] || fail "the report is longer than a comment may be"

number=${NUMBER-}
if [[ -z $number ]]; then
  head=$(jq -rn --arg owner "$HEAD_OWNER" --arg branch "$HEAD_BRANCH" '"\($owner):\($branch)" | @uri')
  number=$(api GET "/pulls?state=open&head=$head" | jq -r '.[0].number // empty')
  [[ -n $number ]] || { echo "no open pull request has this branch"; exit 0; }
fi
[[ $number =~ ^[0-9]+$ ]] || fail "the number of the pull request is none"

# A person could begin a comment with the same line. Only one that a bot wrote is edited.
id=
for page in {1..20}; do
  comments=$(api GET "/issues/$number/comments?per_page=100&page=$page")
  id=$(jq -r --arg marker "$marker" '[.[] | select(.user.type == "Bot" and ((.body // "") | split("\n")[0] | rtrimstr("\r")) == $marker)][0].id // empty' <<<"$comments")
  [[ -z $id && $(jq length <<<"$comments") -eq 100 ]] || break
done
if [[ -n $id ]]; then
  jq -Rs '{body: .}' "$BODY" | api PATCH "/issues/comments/$id" --data-binary @- >/dev/null
else
  jq -Rs '{body: .}' "$BODY" | api POST "/issues/$number/comments" --data-binary @- >/dev/null
fi
