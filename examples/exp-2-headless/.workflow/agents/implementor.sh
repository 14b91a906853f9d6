# The prompt is the file $SLUICE_PROMPT; the working folder is the step's worktree.
printf 'echo $(($1 + $2))\n' > add.sh
echo "wrote add.sh"
