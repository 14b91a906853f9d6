# Makes a bare repository beside this one and names it origin: the forge of this example.
set -e
forge="$(pwd -P).forge.git"
rm -rf "$forge"
git init -q --bare "$forge"
git remote remove origin 2>/dev/null || true
git remote add origin "$forge"
git push -q origin HEAD:refs/heads/main
