#!/usr/bin/env bash
# How long `aoti-inspect show` takes beside public tools that look at the same file: medians of alternating runs, as
# ratios, in a Markdown table. Usage: benches/compare.sh [RUNS [FILE...]]; AOTI_INSPECT names another binary.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-21}
binary=${AOTI_INSPECT:-target/release/aoti-inspect}
[ -x "$binary" ] || cargo build --release --quiet
files=("${@:2}")
if [ ${#files[@]} -eq 0 ]; then
  for name in 2.15.0-cpu-mlp_dynamic.pt2 2.11.0-cuda-multi_arch.pt2 2.15.0-cpu-mlp_dynamic.so 2.11.0-cuda-embed_cubin.so; do
    files+=("testdata/artifacts/$name")
  done
fi

# time of one run in microseconds; what it prints goes nowhere, as fast as it can
once() {
  local start end
  start=$(date +%s%N)
  "$@" >/dev/null 2>&1 || true
  end=$(date +%s%N)
  echo $(((end - start) / 1000))
}

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

missing=()

# row FILE TOOL ARGUMENT...: our show of FILE and the tool with its arguments on FILE, turn by turn
row() {
  local file=$1 ours="" theirs="" mine other
  shift
  if ! command -v "$1" >/dev/null; then
    missing+=("$1")
    return
  fi
  # once for the page cache, and to be sure that it can be read at all
  "$binary" show "$file" >/dev/null
  once "$@" "$file" >/dev/null
  for _ in $(seq "$runs"); do
    ours+="$(once "$binary" show "$file")"$'\n'
    theirs+="$(once "$@" "$file")"$'\n'
  done
  mine=$(printf %s "$ours" | median)
  other=$(printf %s "$theirs" | median)
  awk -v file="$(basename "$file")" -v tool="$*" -v mine="$mine" -v other="$other" 'BEGIN {
    printf "| `%s` | `%s` | %.1f ms | %.1f ms | %.2f |\n", file, tool, mine / 1000, other / 1000, mine / other
  }'
}

echo "| file | compared with | \`aoti-inspect show\` | the other | ratio |"
echo "| --- | --- | ---: | ---: | ---: |"
for file in "${files[@]}"; do
  case $file in
    *.pt2)
      row "$file" unzip -l
      row "$file" python3 -m zipfile -l
      ;;
    *)
      row "$file" readelf -dW --dyn-syms
      row "$file" objdump -d
      ;;
  esac
done
if [ ${#missing[@]} -gt 0 ]; then
  printf '\nnot installed, left out: %s\n' "$(printf '%s\n' "${missing[@]}" | sort -u | paste -sd' ')"
fi
