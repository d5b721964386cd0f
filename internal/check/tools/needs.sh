#!/bin/sh
# needs.sh checks for the programs that `make test` needs besides Go. As root on Debian or Ubuntu it installs missing
# ones. Elsewhere it prints a line for each, with the command that installs it, and fails. needs.sh NAME checks for one.
set -eu
packages= told= only=${1-}
root=$(id -u 2>/dev/null || echo unknown)

# need NAME DEBIAN-PACKAGES HOMEBREW-PACKAGE COMMAND... installs or reports NAME unless one of the commands exists.
need() {
  name=$1 deb=$2 brew=$3
  [ "${only:-$name}" = "$name" ] || return 0
  shift 3
  for each; do
    if command -v "$each" >/dev/null; then return; fi
  done
  if command -v apt-get >/dev/null && [ "$root" = 0 ]; then
    packages="$packages $deb"
    return
  fi
  told=yes
  if command -v apt-get >/dev/null; then
    echo "$name is missing: sudo apt-get install $deb"
  elif command -v brew >/dev/null; then
    echo "$name is missing: brew install $brew"
  else
    echo "$name is missing: install $deb, as your system calls it"
  fi
}

need make make make make
need git git git git
need 'a C compiler, for the race detector,' 'gcc libc6-dev' gcc "${CC:-cc}"
# Chromium does not start without a font, although the page brings its own.
need chromium 'chromium fonts-dejavu-core' '--cask chromium' chromium chromium-browser google-chrome \
  '/Applications/Chromium.app/Contents/MacOS/Chromium' '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'

if [ "$packages" ]; then
  apt-get update -qq
  # shellcheck disable=SC2086 # each word is a package
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi
[ ! "$told" ]
