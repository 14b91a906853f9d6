printf 'test "$(sh add.sh 1 2)" = 3\n' > test.sh
