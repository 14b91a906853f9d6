# Wrong at first. A real agent would read the feedback; this one only sees that there is some.
if [ -e .workflow/retry-context/G-1-attempt-1.md ]; then
	printf 'echo $(($1 + $2))\n' > add.sh
else
	printf 'echo $(($1 - $2))\n' > add.sh
fi
