printf 'test "$(sh add.sh 1 2)" = 3\n' > test.sh
[ -z "$SLUICE_SIGNAL" ] || echo '{"status": "done"}' > "$SLUICE_SIGNAL"
