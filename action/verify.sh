#!/usr/bin/env bash
# Runs verify: annotations to the log, a Markdown report to the job summary, the exit code as output and status.
# Environment: ARTIFACTS and ARGS (one word a line; ARTIFACTS may hold globs), CONFIG, SARIF (paths, may be empty).
set -uo pipefail
shopt -s nullglob globstar
words=(verify --format=github "--output=markdown=${GITHUB_STEP_SUMMARY:-/dev/null}")
[ -z "${CONFIG:-}" ] || words+=("--config=$CONFIG")
[ -z "${SARIF:-}" ] || words+=("--output=sarif=$SARIF")
while IFS= read -r line; do
  [ -z "$line" ] || words+=("$line")
done <<< "${ARGS:-}"
words+=(--)
while IFS= read -r line; do
  [ -n "$line" ] || continue
  files=()
  # a glob is expanded here, a plain name goes through as it is, so that a missing file is reported and not dropped
  case $line in
    *[\*\?\[]*) IFS= ; files=($line); unset IFS ;;
    *) files=("$line") ;;
  esac
  if [ ${#files[@]} -eq 0 ]; then
    printf '::error title=aoti-inspect::%s matches no file\n' "$line"
    printf 'exit-code=2\n' >> "${GITHUB_OUTPUT:-/dev/null}"
    exit 2
  fi
  words+=("${files[@]}")
done <<< "${ARTIFACTS:-}"
aoti-inspect "${words[@]}"
code=$?
printf 'exit-code=%s\n' "$code" >> "${GITHUB_OUTPUT:-/dev/null}"
exit "$code"
