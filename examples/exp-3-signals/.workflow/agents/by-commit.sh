set -e
echo two > b.txt
git add b.txt
git -c user.name=agent -c user.email=agent@example.org commit -qm "Write b.txt

[GATE:G-2]"
