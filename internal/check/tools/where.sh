#!/bin/sh
# where.sh FILE:LINE prints the line's room, what changes with it (changes.txt has what it cannot derive), and its tests.
set -euf
cd "$(dirname "$0")/../../.."
at=${1#"$PWD"/} tests='*_test.go' package='' row='' made='' run='' how=-wF
file=${at%:*} line=${at##*:} dir=$(dirname "${at%:*}") room=$(dirname "${at%:*}")
sed -n "${line}p" "$file" | grep -q '' || { echo "there is no line $at" >&2; exit 1; }
look() { git -c grep.fallbackToNoIndex=true grep "$@" || true; }
say() { awk -v title="$1" 'NF && n++ < 48 { if (n == 1) print title; print "  " substr($0, 1, 900) }'; }
while [ ! "$package" ] || [ ! "$row" ]; do # up to the folder that says what it is
  [ "$package" ] || package=$(look -lE '^// (Package|Command) ' -- ":(glob)$room/*.go" | sort -r | head -1)
  [ "$row" ] || row=$(awk -F'|' -v room="(../$room)" 'index($2, room) { print; exit }' docs/ARCHITECTURE.md)
  [ "$room" != . ] || break
  room=$(dirname "$room")
done
awk '/^\/\/ (Package|Command) / { on = 1 } /^package / { exit } on' "${package:-/dev/null}" | say "ROOM: $package"
pkg=$(dirname "$package")
awk -v file="$file" '$1 == file || index(file, $1 "/") == 1' internal/check/tools/changes.txt | say "CHANGES with it"
echo "$row" | say "ROW of docs/ARCHITECTURE.md: room | what is in it | what changes with it | tests"
[ "$file" = "$package" ] || awk '/^(\/?[\/*]|#| \*|<!)/ { print; on++; next } on || NR > 3 { exit }' "$file" | say HEAD
words='export|default|async|func|function[*]?|type|var|const|let|class|templ|static|get|set'
symbol=$(awk -v line="$line" -v js="${file##*.}" -v words="$words" '
  function remark() { return /^[ \t]*(\/\/|\/?\*)/ }
  function declares() {
    return /^func \(/ || $0 ~ "^((" words ") )+[^(]" || (block && /^\t[A-Za-z_]+( |,|$)/) ||
      (js == "js" && /^  (static |async |get |set )*#?[A-Za-z_]+\(.*\{$/ && !/^  (if|for|while|switch) ?\(/)
  }
  /^(var|const|type) \($/ { block = 1 } /^\)/ { block = 0 }
  declares() && (NR <= line || above) { # a comment belongs to what follows it
    sub("^[ \t]*((" words ") )*(\\([^)]*\\) )?", "")
    found = match($0, /^[#A-Za-z_$][A-Za-z0-9_$]*/) ? substr($0, 1, RLENGTH) : found
  }
  NR == line { above = remark() } NR > line && !(above && remark()) { exit } END { print found }' "$file") 
case $file:$symbol in # where code can name a symbol
*.go:[a-z]*) name=$symbol && set -- "$dir/*" internal/check/compat/mutations/table.txt ;;
*.go:*) name=$symbol && set -- '*.go' '*.templ' '*.yaml' '*.txtar' '*.dlv' '*.txt' ;;
*:*[A-Z]*) name=$symbol && set -- 'viz/*' 'cmd/tab/*' 'internal/check/compat/*' ;;
*) how=-E name="(^|[^A-Za-z0-9_])$symbol\\(" && set -- 'viz/*' 'cmd/tab/*' 'internal/check/compat/*' ;;
esac
if [ "$symbol" ]; then
  found=$(look -pn $how -e "$name" -- "$@")
  echo "$found" | sed -nE '/^[^:=]*_test.go[:=]/!s/[:=].*//p' | uniq | say "NAMED: $symbol, in"
  echo "$found" | sed -nE 's/^([^=:]*_test\.go)=.*=func (\([^)]*\) )?([^(]*).*/\1 \3/p' | sort -u | say "TESTS with it"
  case $symbol in *[A-Z]*) look -nwF -e "$symbol" -- '*.md' | cut -c1-150 | say 'DOCUMENTS that name it' ;; esac
fi
grep -F "](../$file)" docs/WHERE.md | say "WHERE: rows about this file: question | decided in | with it; test"
look -lF -e "$(basename "$file")" -- ':!docs/WHERE.md' ":!$file" | say "NAMED: this file, in"
for drawn in $(cut -d' ' -f3 docs/pictures.sum); do
  case $file in $drawn) made='docs/*.png: make screenshots' ;; esac
done
case $file in
*.lw.gz | *takes.sum) made='this file: make recordings' ;;
docs/*.png | docs/*.sum | *moments.sum) made='this file: make screenshots' ;;
*_templ.go | *types.d.ts | *constants.go | .run/* | .vscode/* | docs/[KL]*S.md) made='this file: make generate' ;;
internal/check/compat/*) run="go -C internal/check/compat test ./${pkg#internal/check/compat/}" ;;
viz/*) run="go test ./viz/..., make lint, and in a browser: go -C internal/check/compat test ./e2e" ;;
cmd/* | internal/*) run="go test ./$pkg" ;;
esac
echo "$made" | say "MADE, never written by hand"
echo "${run:-make generate}, and go test ./internal/check/policy ./internal/text/book" | say "RUN"
[ "$dir" = . ] || look -lF -e "\"listwatch/$dir\"" -- '*.go' | sed 's|/[^/]*$||' | sort -u | say "IMPORTED by"
