#!/bin/sh
# where.sh FILE:LINE prints the line's room, what changes with it (changes.txt has what it cannot derive), its tests.
set -euf
cd "$(dirname "$0")/../../.."
at=${1#"$PWD"/} package='' row='' made='' run='' found='' how=-wF
file=${at%:*} line=${at##*:} dir=$(dirname "${at%:*}") room=$(dirname "${at%:*}")
sed -n "${line}p" "$file" | grep -q '' || { echo "there is no line $at" >&2; exit 1; }
look() { git -c grep.fallbackToNoIndex=true grep "$@" || true; }
say() { awk -v title="$1" 'NF && n++ < 20 { if (n == 1) print title; print "  " substr($0, 1, 900) }'; }
list() { # files as a row for each folder; a short name ($2) in more than 12 files says nothing
  awk -v short="${2:+$((${#2} < 8))}" -v title="$1" '
    NF { at = match($0, /[^\/]*$/); dir = substr($0, 1, at - 1); in_[dir] = in_[dir] " " substr($0, at); n++ }
    END { if (n > 12 && short) { print title ": too common"; exit }
      if (n) print title; for (dir in in_) print "  " dir (dir ? ":" : "") substr(in_[dir], 1, 400) | "sort" }'; }
while [ ! "$package" ] || [ ! "$row" ]; do # up to the folder that says what it is
  [ "$package" ] || package=$(look -lE '^// (Package|Command) ' -- ":(glob)$room/*.go" | sort -r | head -1)
  [ "$row" ] || row=$(awk -F'|' -v room="(../$room)" 'index($2, room) { print; exit }' docs/ARCHITECTURE.md)
  [ "$room" != . ] && room=$(dirname "$room") || break
done
awk '/^\/\/ (Package|Command) / { on = 1 } /^package / { exit } on' "${package:-/dev/null}" | say "ROOM: $package"
awk -v file="$file" '$1 == file || index(file, $1 "/") == 1' internal/check/tools/changes.txt | say "CHANGES with it"
echo "$row" | say "ROW of docs/ARCHITECTURE.md: room | what is in it | what changes with it | tests"
[ "$file" = "$package" ] || awk '/^(\/?[\/*]|#| \*|<!)/ { print; on++; next } on || NR > 3 { exit }' "$file" | say HEAD
words='export|default|async|func|function[*]?|type|var|const|let|class|templ|static|get|set'
symbol=$(awk -v line="$line" -v js="${file##*.}" -v words="$words" '
  function remark() { return /^[ \t]*(\/\/|\/?\*)/ }
  function declares() { return /^func \(/ || $0 ~ "^((" words ") )+[^(]" || (block && /^\t[A-Za-z_]+( |,|$)/) ||
      (js == "js" && /^  (static |async |get |set )*#?[A-Za-z_]+\(.*\{$/ && !/^  (if|for|while|switch) ?\(/) }
  /^(var|const|type) \($/ { block = 1 } /^\)/ { block = 0 }
  declares() && (NR <= line || above) { # a comment belongs to what follows it
    method = js == "js" && /^  [a-z]/; sub("^[ \t]*((" words ") )*(\\([^)]*\\) )?", "")
    found = match($0, /^[#A-Za-z_$][A-Za-z0-9_$]*/) ? (method ? "." : "") substr($0, 1, RLENGTH) : found
  }
  NR == line { above = remark() } NR > line && !(above && remark()) { exit } END { print found }' "$file")
case $file:$symbol in # where code can name a symbol
*:.*) how=-F name=$symbol\( symbol=${symbol#.} && set -- 'viz/*' 'cmd/tab/*' 'internal/check/compat/*' ;;
*.go:[a-z]*) name=$symbol && set -- "$dir/*" internal/check/compat/mutations/table.txt ;;
*.go:*) name=$symbol && set -- '*.go' '*.templ' '*.yaml' '*.txtar' '*.dlv' '*.txt' ;;
*:*[A-Z]*) name=$symbol && set -- 'viz/*' 'cmd/tab/*' 'internal/check/compat/*' ;;
*) how=-E name="(^|[^A-Za-z0-9_])$symbol\\(" && set -- 'viz/*' 'cmd/tab/*' 'internal/check/compat/*' ;;
esac
[ ! "$symbol" ] || found=$(look -pn $how -e "$name" -- "$@")
echo "$found" | sed -nE '/^[^:=]*_(test|templ).go[:=]/!s/[:=].*//p' | uniq | list "NAMED: $symbol" "$symbol"
echo "$found" | sed -nE 's/^([^=:]*_test\.go)=.*=func (\([^)]*\) )?([^(]*).*/\1 \3/p' | sort -u | say "TESTS with it"
case $symbol in *[A-Z]*) look -nwF -e "$symbol" -- '*.md' | cut -c1-150 | say 'DOCUMENTS that name it' ;; esac
parts='/viz/[A-Za-z/-]*[A-Za-z]|[A-Z][A-Za-z]+' q="[\"'\`]"
case $file in *.css | *.templ) parts='[.#][A-Za-z][A-Za-z0-9_-]*|(class|id)="[^"{]*"|"[a-z-]+"' ;; esac
for part in $(sed -n "${line}p" "$file" | grep -oE "$parts" | sed -E 's/^[a-z]*=?"|"//g' | sort -u | head -8); do
  case $part in # of the line: a route, a point's name, a class or an id
  /viz/*) title="ROUTE: $part" used="(/|$q)${part##*/}($q|[]/?\$) ])" go='viz/*.go' ;;
  [A-Z]*) title="POINT: $part" used="(^|[^A-Za-z])$part([^A-Za-z]|\$)" go='*.go' ;;
  *) part=${part#[.#]} go='*/e2e/*.go' && title="USES: $part"
    used="[.#]$part([^A-Za-z0-9_-]|\$)|$q([A-Za-z -]* )?$part( [A-Za-z -]*)?$q" ;;
  esac
  [ "${title%%:*}" != POINT ] || grep -q "{Name: \"$part\"" internal/observe/probe/points.go || continue
  look -lE "$used" -- "$go" '*/e2e/*.go' '*.js' '*.css' '*.templ' '*.yaml' '*takes.sum' ':!chapters/*_test.go' \
    ':!*_templ.go' ':!*constants.go' | list "$title" "${title#POINT*}"
done
grep -F "](../$file)" docs/WHERE.md | say "WHERE: rows about this file: question | decided in | with it; test"
base=${file##*/} # with its folder, if there are several
[ "$(git ls-files ":(glob)**/$base" | wc -l)" -lt 2 ] || base=${dir##*/}/$base
look -lF -e "$base" -- ':!docs/WHERE.md' ":!$file" | list "NAMED: this file"
for drawn in $(cut -d' ' -f3 docs/pictures.sum); do case $file in $drawn) made='docs/*.png: make screenshots' ;; esac; done
case $file in
*.lw.gz | *takes.sum) made='this file: make recordings' ;;
docs/*.png | docs/*.sum | *moments.sum) made='this file: make screenshots' ;;
*_templ.go | *log/types.d.ts | *constants.go | .run/* | .vscode/* | docs/[KL]*S.md) made='this file: make generate' ;;
internal/check/compat/clients/*) run='make clients' ;;
internal/check/compat/oldkubectl/* | internal/check/compat/cmd/*) run='go -C internal/check/compat test ./kubectl' ;;
internal/check/compat/*) run="go -C internal/check/compat test ./${package#internal/check/compat/}" run=${run%/*} ;;
*stories/*.yaml) run='go test ./internal/play/scenario ./internal/observe/takes; go -C internal/check/compat test ./e2e' ;;
viz/*) run="go test ./viz/..., make lint, and in a browser: go -C internal/check/compat test ./e2e" ;;
chapters/* | cmd/* | internal/*) run="go test ./${package%/*}" ;;
esac
echo "$made" | say "MADE, never written by hand"
echo "${run:-make generate}, and go test ./internal/check/policy ./internal/text/book" | say "RUN"
[ "$dir" = . ] || look -lF -e "\"listwatch/$dir\"" -- '*.go' | sed 's|/[^/]*$||' | sort -u | list "IMPORTED by"
