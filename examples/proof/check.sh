#!/bin/sh
# Three lines have to be in the file "mended".
n=$(cat mended 2>/dev/null | wc -l)
[ "$n" -ge 3 ] && exit 0
echo "$((3 - n)) of 3 are missing"
exit 1
