#!/bin/sh
# build.sh builds the machine of a tab from the module cache, without a network: run it from the repository's root. Two
# packages that etcd's client imports do not compile for js. -overlay cannot replace a file of the module cache, so
# their modules are copied into bin/tab and patched there, and bin/tab/go.mod replaces them. An overlay puts stubs in
# place of the embedded files that the pages load themselves.
set -eu
go=${GO:-go}
out=bin/tab
rm -rf $out
mkdir -p $out/site
etcd=go.etcd.io/etcd/client/pkg/v3
systemd=github.com/coreos/go-systemd/v22
cp -R "$($go list -m -f '{{.Dir}}' $etcd)" $out/etcd
cp -R "$($go list -m -f '{{.Dir}}' $systemd)" $out/systemd
chmod -R u+w $out
for file in systemd/journal/journal_unix etcd/fileutil/lock_flock etcd/fileutil/lock_unix; do
  sed 's/^\/\/go:build .*/& \&\& !js/' $out/$file.go > $out/mended && mv $out/mended $out/$file.go
done
cp $out/systemd/journal/journal_windows.go $out/systemd/journal/journal_js.go
sed 's/syscall.DMEXCL|//; /"syscall"/d; s/os.Open(/os.OpenFile(/' $out/etcd/fileutil/lock_plan9.go \
  > $out/etcd/fileutil/lock_js.go
cp go.mod go.sum $out
$go mod edit -replace $etcd=./$out/etcd -replace $systemd=./$out/systemd $out/go.mod

# stub prints a replacement for a file: the smallest content that the code which embeds the file accepts.
stub() {
  case $1 in
    *.go) sed -n '/^package /p;/^package /q' "$1" ;;
    *.gz) echo '{}' | gzip -n ;;
  esac
}
root=$($go env GOROOT)
first='{"Replace":{'
for file in internal/observe/takes/*.lw.gz $(find internal/server/apiserver/openapi -type f) docs/*.png docs/*.md \
  chapters/*/README.md chapters/*/*.svg chapters/*/*_test.go viz/*/*.js viz/*/*.css viz/*/*.svg viz/*/*.woff2; do
  [ -f "$file" ] || { echo "there is no $file to be left out" >&2 && exit 1; }
  instead=$out/nothing/$(echo "$file" | tr / _)
  mkdir -p $out/nothing
  stub "$file" > "$instead"
  printf '%s"%s":"%s"' "$first" "$PWD/$file" "$PWD/$instead"
  first=,
done > $out/overlay.json
# chi links the profiler, which the machine does not offer, so functions with the right names are enough.
pprof=net/http/pprof/pprof.go
{
  echo 'package pprof; import "net/http"; func Handler(string) http.Handler { return nil }'
  for name in Index Cmdline Profile Symbol Trace; do echo "func $name(http.ResponseWriter, *http.Request) {}"; done
} > $out/nothing/pprof.go
printf ',"%s":"%s"}}\n' "$root/src/$pprof" "$PWD/$out/nothing/pprof.go" >> $out/overlay.json
# grpcnotrace keeps gRPC from importing html/template, which makes the linker keep every exported method. -l: without
# inlining, third-party code, mostly the types of Kubernetes' API, is a fifteenth smaller and not noticeably slower.
GOOS=js GOARCH=wasm $go build -modfile=$out/go.mod -overlay=$out/overlay.json -trimpath -tags grpcnotrace \
  -gcflags 'all=-l' -gcflags 'std=' -gcflags 'listwatch/...=' -ldflags '-s -w' -o $out/machine.wasm ./cmd/tab

gzip -9 -n -c $out/machine.wasm > $out/site/machine.gz
# part writes standard input as a script that a page can load from a folder (viz/export/static.js).
part() { printf 'listwatchFile("machine/%s", "%s");\n' "$1" "$(base64 | tr -d '\n')" > "$out/site/$1.js"; }
cat "$root/lib/wasm/wasm_exec.js" cmd/tab/worker.js | part worker
split -b 1048576 $out/site/machine.gz $out/part.
n=0
for piece in $out/part.*; do
  part $n < "$piece"
  n=$((n + 1))
done
{ cat cmd/tab/tab.js; echo 'listwatchFile("machine/tab", "");'; } > $out/site/tab.js
size=$(wc -c < $out/site/machine.gz | tr -d ' ')
echo "$size $n" > $out/machine

# These are the licences and notices of all modules in the machine. A module without one must not be distributed.
modules=$(GOOS=js GOARCH=wasm $go list -tags=grpcnotrace -deps \
  -f '{{with .Module}}{{if not .Main}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/tab)
printf 'The machine contains code of others, under these licences.\n' > $out/site/THIRD-PARTY.txt
printf '%s\n' "$modules" "$($go env GOVERSION) $root" | LC_ALL=C sort -u | while read -r module dir; do
  files=$(find "$dir/" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
  [ "$files" ] || { echo "$module has no licence in $dir" >&2 && exit 1; }
  echo "$files" | while read -r file; do
    printf '\n%s (%s)\n\n' "$module" "${file##*/}" && cat "$file" && printf '\n%80s\n' '' | tr ' ' =
  done
done >> $out/site/THIRD-PARTY.txt
echo "the machine has $size bytes"
