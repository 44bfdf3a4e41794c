#!/usr/bin/env bash
# summary.sh OUT COMMIT: what gpu_check.sh left in OUT as a page of Markdown.
set -uo pipefail
out=$1

# fields FILE KEY...: of each line of JSON the values of these keys, between tabs; "-" where a key is missing.
fields() {
    local file=$1
    shift
    [[ -e $file ]] || return 0
    awk -v keys="$*" '
        BEGIN { n = split(keys, key, " ") }
        {
            row = ""
            for (i = 1; i <= n; ++i) {
                value = "-"
                if (match($0, "\"" key[i] "\":(\"([^\"\\\\]|\\\\.)*\"|[^,}]*)"))
                    value = substr($0, RSTART + length(key[i]) + 3, RLENGTH - length(key[i]) - 3)
                gsub(/^"|"$/, "", value)
                row = row (i > 1 ? "\t" : "") value
            }
            print row
        }' "$file"
}

IFS=$'\t' read -r device total driver runtime < <(fields "$out/calibration.jsonl" device total driver runtime)
[[ -n ${device-} && $device != - ]] || device=$(sed -n 's/^device: //p' "$out/checks.txt" 2>/dev/null)
cat <<END
# ${device:-unknown device}, $(date -u +%Y-%m-%d)

| what | |
|---|---|
| driver, runtime | ${driver:--}, ${runtime:--} |
| memory | ${total:--} bytes |
| tree | $2 |
| checks | $(tail -n 1 "$out/checks.txt" 2>/dev/null || echo none) |

END
if grep -q '^FAILED' "$out/checks.txt" 2>/dev/null; then
    printf '## What failed\n\n```\n%s\n```\n\n' "$(grep '^FAILED' "$out/checks.txt")"
fi
for file in calibration bench; do
    grep -q '"done":true' "$out/$file.jsonl" 2>/dev/null || printf '%s.jsonl is not complete.\n\n' "$file"
done

printf '## Calls\n\n| call | bytes | samples | least ns | median ns | p99 ns | per second |\n'
printf '|---|--:|--:|--:|--:|--:|--:|\n'
fields "$out/calibration.jsonl" op bytes n min_ns p50_ns p99_ns per_second |
    awk -F'\t' '$1 != "-" { printf "| %s | %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, $4, $5, $6, $7 }'

printf '\n## Evals\n\nMedian of rounds, least to most, ns an eval.\n\n'
printf '| extra strategy | frames | host | wall |\n|---|--:|--:|--:|\n'
fields "$out/bench.jsonl" bench strategy frames host_ns host_ns_least host_ns_most wall_ns wall_ns_least wall_ns_most |
    awk -F'\t' '$1 == "evals" { printf "| %s | %s | %s (%s to %s) | %s (%s to %s) |\n",
        $2, $3, $4, $5, $6, $7, $8, $9 }'

printf '\n## Device memory\n\nA block taken and given back on a stream, ns.\n\n'
printf '| way | bytes | pair |\n|---|--:|--:|\n'
fields "$out/bench.jsonl" bench strategy bytes pair_ns pair_ns_least pair_ns_most |
    awk -F'\t' '$1 == "memory" { printf "| %s | %s | %s (%s to %s) |\n", $2, $3, $4, $5, $6 }'
