#!/bin/sh
# make.sh makes the font files in this folder, with the characters that fonts.css names, from the Debian packages
# fonts-inter-variable 4.0~beta7+ds-1 (Inter 3.19) and fonts-jetbrains-mono 2.242+ds-3, by fonttools 4.38 (packages
# python3-fonttools and python3-brotli). It leaves out hints, and ligatures, which would change the look of code.
set -eu
cd "$(dirname "$0")"
faces=${FACES:-/usr/share/fonts/truetype}
python=${PYTHON:-python3}
made=$(mktemp -d)

# face FILE FONT FEATURES writes FILE with the characters that fonts.css lists for it. It fails if FONT lacks one.
face() {
  range=$(tr '\n' ' ' < fonts.css | sed "s/.*$1[^}]*unicode-range: \([^;]*\);.*/\1/")
  $python -m fontTools.subset "$2" --unicodes="$range" --no-ignore-missing-unicodes --no-hinting \
    --name-IDs=0,1,2,3,4,5,6,13,14 --layout-features="$3" --flavor=woff2 --output-file="$1"
}

for slope in roman italic; do
  $python -m fontTools.varLib.instancer -q "$faces/inter-vf/Inter-$slope.var.ttf" wght=400:750 -o "$made/$slope.ttf"
done
face text.woff2 "$made/roman.ttf" kern,mark,ccmp,tnum
face italic.woff2 "$made/italic.ttf" kern,mark,ccmp,tnum
face mono.woff2 "$faces/jetbrains-mono/JetBrainsMono-Regular.ttf" mark,ccmp
face bold.woff2 "$faces/jetbrains-mono/JetBrainsMono-Bold.ttf" mark,ccmp
rm -r "$made"
wc -c ./*.woff2
