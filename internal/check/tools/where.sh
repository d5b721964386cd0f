#!/bin/sh
# where.sh FILE:LINE prints the line's room, its tests and what changes with it. changes.txt has what it cannot derive.
set -euf
cd "$(dirname "$0")/../../.."
at=${1#"$PWD"/} package='' row='' made='' run='' found='' e2e='go -C internal/check/compat test ./e2e'
file=${at%:*} line=${at##*:} dir=$(dirname "${at%:*}") room=$(dirname "${at%:*}")
sed -n "${line}p" "$file" | grep -q '' || { echo "there is no line $at" >&2; exit 1; }
text=$(case $file in *.css) sed -n "1,${line}p" "$file" | grep '^[^ }].*{' | tail -1 ;; esac; sed -n "${line}p" "$file")
look() { git -c grep.fallbackToNoIndex=true grep "$@" || true; }
say() { awk -v title="$1" 'NF && n++ < 20 { if (n == 1) print title; print "  " substr($0, 1, 900) }'; }
list() { # prints files in a row for each folder, or only a note if a short name ($2) is in more than 12 files
  awk -v short="${2:+$((${#2} < 8))}" -v title="$1" '
    NF { at = match($0, /[^\/]*$/); dir = substr($0, 1, at - 1); in_[dir] = in_[dir] " " substr($0, at); n++ }
    END { if (n > 12 && short) { print title ": too common"; exit }
      if (n) print title; for (dir in in_) print "  " dir (dir ? ":" : "") substr(in_[dir], 1, 400) | "sort" }'; }
while [ ! "$package" ] || [ ! "$row" ]; do # goes up to a folder that has both
  [ "$package" ] || package=$(look -lE '^// (Package|Command) ' -- ":(glob)$room/*.go" | sort -r | head -1)
  [ "$row" ] || row=$(grep "^| [^|]*(\.\./$room)" docs/ARCHITECTURE.md | tail -1)
  [ "$room" != . ] && room=$(dirname "$room") || break
done
awk '/^\/\/ (Package|Command) / { on = 1 } /^package / { exit } on' "${package:-/dev/null}" | say "ROOM: $package"
awk -v file="$file" '$1 == file || index(file, $1 "/") == 1' internal/check/tools/changes.txt | say "CHANGES with it"
echo "$row" | say "ROW of docs/ARCHITECTURE.md: room | what is in it | what changes with it | tests"
[ "$file" = "$package" ] || awk '/^(\/?[\/*]|#| \*|<!)/ { print; on++; next } on || NR > 3 { exit }' "$file" | say HEAD
set -- $(awk -v line="$line" -v js="$(echo "$file" | sed '/\.js$/!d')" -f internal/check/tools/symbol.awk "$file")
symbol=$(echo "${1-}" | sed 's/[$]/[$]/') kind=${2-} a='(^|[^A-Za-z0-9_.])' z='($|[^A-Za-z0-9_])' all='*.go *.templ'
! grep -qE "return \{.*[ {]$symbol([,: ]|\$)|^    $symbol,\$" "$file" || kind=$(echo "$kind" | sed 's/own/method/')
near=$a$symbol$z far="$a$(sed -n 's/^package //p' "$file")[.]$symbol$z" && set -- ":(glob)$dir/*"
importers=$([ "$dir" = . ] || look -lF -e "\"listwatch/$dir\"" -- '*.go' | sed 's|/[^/]*$||' | sort -u)
case $kind in # where and how code can name a symbol
field) near="[.]$symbol([^A-Za-z0-9_(]|\$)|(^|[ {,	])$symbol(:|(,[^=]*)? [}] =)" far=$near ;;
method) near="([.]|[)] |^ +)$symbol([?][.]|[?])?([(),]|\$)" far=$near ;;
call) near="$a$symbol([(),;]| [}])" ;;
esac
case $file:$kind:$symbol in # other types have methods with such short names, too
*.js:own:*) set -- "$file" && far='' ;;
*.js:field:*) set -- 'viz/*s' && far='' ;;
*.js:*) set -- 'viz/*s' 'cmd/tab/*.js' 'internal/check/compat/*.js' '*/e2e/*.go' && far="(page|import).*[.]$symbol$z" ;;
*:*:[a-z]*) far='' ;;
*:[fm]*:[A-Z]*) [ ${#symbol} -gt 7 ] || all=$importers ;;
esac
[ ! "$symbol" ] || found=$(look -pnE -e "$near" --and --not -e '^[[:space:]]*(//|/?[*])' -- "$@"
  [ ! "$far" ] || look -pnE -e "$far" -- $all '*.yaml' '*.txtar' '*.dlv' '*.txt')
named=$(echo "$found" | sed -nE '/^[^:=]*_(test|templ).go[:=]/!s/[:=].*//p' | sort -u | list "NAMED: $symbol" "$symbol")
case $named in *' too common') found='' few='too common' ;; esac
[ ! "$named" ] || echo "$named"
tests=$(echo "$found" | sed -nE 's/^([^=:]*_test\.go)=.*=func (\([^)]*\) )?([^(]*).*/\1 \3/p' | sort -u)
[ ! "$symbol" ] || [ "$tests" ] && echo "$tests" | say 'TESTS with it' || echo "TESTS with it: ${few-none names it}"
grep -hA1 -E "^($dir ([A-Za-z]+[.])?${symbol:-^}|viz ${file#viz/}) " internal/check/compat/mutations/table.txt |
  grep -v '^--' | say 'MUTATIONS: rows of internal/check/compat/mutations/table.txt'
base=${file##*/} # with its folder, if several files have this name
[ "$(git ls-files ":(glob)**/$base" | wc -l)" -lt 2 ] || base=${dir##*/}/$base
case ${#symbol}$symbol in [1-4][!0-9]*) ;; *[A-Z]*) word="$a([A-Za-z]+[.])?$symbol$z|" ;; esac
look -nE "${word-}(\[|[.])${symbol:-.^}\`?[]][(][^)]*$base[)]" -- '*.md' | cut -c1-150 | say 'DOCUMENTS that name it'
parts='/viz/[A-Za-z/-]*[A-Za-z]|[A-Z][A-Za-z]+|"[a-z]+[._][a-z._]+"|dataset.[a-z]+|data-[a-z-]+' q="[\"'\`]"
case $file in *.css) parts='[.#][a-z][a-z0-9-]*|(data|-)-[a-z-]+' ;; viz/*) parts="$parts|\"[a-z][a-z0-9 -]*\"" ;; esac
for part in $({ echo "${text#*type=\"button\"}" && echo "$found" | grep "Handle(.*$symbol"; } | # and its routes
  grep -oE "$parts" | sed -E 's/^[a-z]*=?"|"//g; s/^dataset./data-/' | sort -u | head -8); do
  go='*/e2e/*.go' title="USES: $part"
  case $part in # part is a route, a point's name, a field, an attribute, a colour, a knob, a class or an id
  /viz/*) title="ROUTE: $part" used="(/|$q)${part##*/}($q|[]/?\$) ])" go='viz/*.go' ;;
  [A-Z]*) grep -q "{Name: \"$part\"" internal/observe/probe/points.go && title=POINT:\ $part used=$a$part$z go='*.go' ;;
  data-* | --* | [a-z]*[._][a-z]*) go='*.[gm][od]'
    used="(^|[^a-z-])($part|dataset[.]${part#data-}|data: \{.* ${part#data-}:)([^A-Za-z-]|\$)" ;;
  *) part=${part#[.#]} used="[.#?&]$part([^A-Za-z0-9_-]|\$)|$q([A-Za-z -]* )?$part( [A-Za-z -]*)?$q"
    git grep -qE "[.#]$part([^a-z(-]|\$)|id(=| === )\"$part\"" -- '*.css' '*.js' '*.templ' ;;
  esac && look -lE -e "$used" -- "$go" '*/e2e/*.go' 'internal/text/*.go' '*/chapterdrawing/*.go' '*.js' '*.css' \
    '*.templ' '*.yaml' '*takes.sum' ':!chapters/*_test.go' ':!*_templ.go' ':!*constants.go' |
    list "$title" "${title#POINT*}"
done
echo "$text" | grep -oE '(^	+[A-Z][a-z,]+ [a-z]+ |["`>])[A-Za-z][^"`<>{}%$]{4,}' | sed 's/^[^A-Za-z]*//' |
  grep ' [^ ]' | head -4 | while read -r said; do
  look -lF -e "$said" -- '*_test.go' '*.md' '*.txtar' '*.yaml' | list "TEXT: $said"
done
grep -F "](../$file)" docs/WHERE.md | say "WHERE: rows about this file: question | decided in | also change; test"
look -lF -e "$base" --and --not -e Upstream: -- ':!docs/WHERE.md' ":!$file" | list "NAMED: this file"
for of in $(cut -d' ' -f3 docs/pictures.sum); do case $file in $of) made='docs/*.png: make screenshots' ;; esac; done
case $file in
*.lw.gz | *takes.sum) made='this file: make recordings' ;;
docs/*.png | docs/*.sum | *moments.sum) made='this file: make screenshots' ;;
*_templ.go | *log/types.d.ts | *constants.go | .run/* | .vscode/* | docs/[KL]*S.md) made='this file: make generate' ;;
internal/check/compat/clients/*) run='make clients' ;;
internal/check/compat/oldkubectl/* | internal/check/compat/cmd/*) run='go -C internal/check/compat test ./kubectl' ;;
internal/check/compat/*) run="go -C internal/check/compat test ./${package#internal/check/compat/}" run=${run%/*} ;;
*stories/*.yaml) run="go test ./internal/play/scenario ./internal/observe/takes; $e2e" ;;
viz/*) run="go test ./viz/..., make lint, and in a browser: $e2e" ;;
chapters/* | cmd/* | internal/*) run=${package:+"go test ./${package%/*}"} ;;
docs/*) run='make generate' ;;
esac
echo "$made" | say "MADE, never written by hand"
echo "${run:+$run, and }go test ./internal/check/policy ./internal/text/book" | say "RUN"
echo "$importers" | list "IMPORTED by"
