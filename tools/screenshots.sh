#!/bin/sh
# Takes the pictures of README from the demo: make screenshots. Chromium must be installed.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'kill "$service" 2>/dev/null; wait "$service" 2>/dev/null; rm -rf "$folder"' EXIT
service=
mkfifo "$folder/url"
bin/mlpromote demo "$folder/demo" --serve --listen 127.0.0.1:0 >"$folder/url" &
service=$!
read -r url <"$folder/url"
take() { # FILE PATH HEIGHT
	chromium --headless --no-sandbox --hide-scrollbars --user-data-dir="$folder/browser" \
		--window-size=1280,"$3" --screenshot="$PWD/docs/images/$1" "$url$2" 2>/dev/null
}
mkdir -p docs/images
take models.png / 640
take model.png /models/vision/digits 1200
ls -l docs/images
