# What `gh pr create` comes to: the forge publishes refs/pull/N/head. Here the forge is a bare repository.
set -e
echo three > c.txt
git add c.txt
git -c user.name=agent -c user.email=agent@example.org commit -qm "Write c.txt"
git push -q origin HEAD:refs/pull/1/head
