#!/bin/sh
# A desktop without a screen: its own bus, and dunst, which prints every notice that it shows.
#
#   dbus-run-session -- tests/clients/desktop.sh FOLDER
#
# Writes the address of the bus to FOLDER/bus and the notices to FOLDER/shown. dunst is started by the first line on
# stdin. Ends with its input.
set -eu
folder=$1
echo "$DBUS_SESSION_BUS_ADDRESS" >"$folder/bus"
read -r _
Xvfb -displayfd 3 -screen 0 640x480x8 -nolisten tcp 3>"$folder/display" >/dev/null 2>&1 &
screen=$!
while [ ! -s "$folder/display" ]; do sleep 0.1; done
: >"$folder/dunstrc"
DISPLAY=:$(cat "$folder/display") dunst -print -config "$folder/dunstrc" >"$folder/shown" 2>/dev/null &
shower=$!
cat >/dev/null
kill "$shower" "$screen"
