# Wrong at first. A real agent would read the feedback; this one only sees that there is some in its prompt.
if grep -q 'XG-1-2-attempt-1' "$1"; then
	printf 'echo $(($1 + $2))\n' > add.sh
else
	printf 'echo $(($1 - $2))\n' > add.sh
fi
