#!/bin/sh
# bag.sh makes what is handed out: the bag, one archive for a room without a network. Run it from the repository's root.
#
#   sh cmd/bag/bag.sh pack FILE [TARGETS]       writes the bag: sources, modules, the site; viz, kubectl and delve for
#                                               each target, such as linux/amd64,windows/arm64
#   sh cmd/bag/bag.sh licences TARGET PROGRAM   prints the licences of what is linked into viz, kubectl, dlv, or into the
#                                               machine of a tab
#
# `make bag-check` works from a bag as an attendee would.
set -eu
go=${GO:-go}

# go_for TARGET PROGRAM VERB FLAG… runs the go command for a program and a target.
go_for() (
  export GOOS="${1%/*}" GOARCH="${1#*/}" CGO_ENABLED=0 GOFLAGS=-buildvcs=false
  program=$2 verb=$3
  shift 3
  case $program in
    viz) $go "$verb" "$@" ./cmd/viz ;;
    kubectl) $go "$verb" -C internal/check/compat "$@" ./cmd/kubectl ;;
    # Delve takes Windows on ARM for an experiment, and has it under this tag only.
    dlv) $go "$verb" -modfile=internal/check/tools/go.mod -tags=exp.winarm64 "$@" github.com/go-delve/delve/cmd/dlv ;;
    machine) $go "$verb" -tags=grpcnotrace "$@" ./cmd/tab ;; # as cmd/tab/build.sh
    *) echo "there is no program $program" >&2 && exit 1 ;;
  esac
)

# licences prints the licences and notices of all that a program is made of. A module without one is an error: it may
# not be handed out.
licences() {
  modules=$(go_for "$1" "$2" list -deps \
    -f '{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}}@{{.Version}} {{.Dir}}{{end}}{{end}}')
  printf '%s contains code of others, under these licences.\n' "$2"
  printf '%s\n' "$modules" "$($go env GOVERSION) $($go env GOROOT)" | LC_ALL=C sort -u | while read -r module dir; do
    files=$(find "$dir/" -maxdepth 1 -type f \( -iname 'licen[sc]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
    [ "$files" ] || { echo "$module has no licence in $dir" >&2 && exit 1; }
    echo "$files" | while read -r file; do
      printf '\n%s (%s)\n\n' "$module" "${file##*/}" && cat "$file" && printf '\n%80s\n' '' | tr ' ' =
    done
  done
}

# pack writes the bag. All is made from what is committed, whatever is edited meanwhile.
pack() {
  temp=$(mktemp -d)
  trap 'rm -rf "$temp"' EXIT
  trap 'exit 1' INT TERM
  bag=$temp/bag version=$(git describe --tags --always --dirty)
  mkdir -p "$bag/listwatch"
  git archive HEAD | tar -x -C "$bag/listwatch"
  case $1 in /*) file=$1 ;; *) file=$PWD/$1 ;; esac
  cd "$bag/listwatch"
  cp cmd/bag/START.txt "$bag"

  # Without a version kubectl says that it is v0.0.0, and -ready would call it too old.
  kubernetes=$(sed -n 's/.*KubernetesVersion = "\([^"]*\)".*/\1/p' internal/text/source/upstream.go)
  linked="-s -w -X main.releaseName=$version -X k8s.io/component-base/version.gitVersion=$kubernetes"
  for target in $(echo "$2" | tr , ' '); do
    dir=$bag/bin/$(echo "$target" | tr / -)
    mkdir -p "$dir"
    cp LICENSE "$dir"
    for program in viz kubectl dlv; do
      echo "build $program for $target"
      go_for "$target" $program build -trimpath -ldflags="$linked" -o "$dir/"
      licences "$target" $program >> "$dir/THIRD-PARTY.txt"
    done
  done

  # A module cache keeps what it downloads in the form of a GOPROXY. The cache of this computer is asked first.
  proxies=file://$($go env GOMODCACHE)/cache/download,$($go env GOPROXY)
  for module in . internal/check/compat internal/check/tools; do
    echo "download the modules of $module"
    GOMODCACHE=$temp/modcache GOFLAGS=-modcacherw GOPROXY=$proxies $go -C $module mod download
  done
  mv "$temp/modcache/cache/download" "$bag/modules"

  make site GO="$go" > "$temp/site.txt" || { cat "$temp/site.txt" && exit 1; }
  mv site "$bag" # it leaves the sources, which are as they were
  rm -rf bin

  # git writes zip archives on every system, of trees that it has stored.
  git init -q "$temp/git"
  cd "$bag"
  export GIT_DIR="$temp/git/.git" GIT_WORK_TREE="$bag"
  git -c core.compression=0 -c core.autocrlf=false add -f -A
  git archive --format=zip -o "$temp/bag.zip" "$(git write-tree)"
  mv "$temp/bag.zip" "$file"
}

case $#:${1-} in
  2:pack | 3:pack)
    pack "$2" "${3:-linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64}"
    ;;
  3:licences) licences "$2" "$3" ;;
  *) echo "usage: bag.sh pack FILE [TARGETS] | licences TARGET PROGRAM" >&2 && exit 2 ;;
esac
