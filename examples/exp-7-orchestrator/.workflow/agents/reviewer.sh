# A reviewer ends with its verdict as JSON.
sum=$(sh add.sh 1 2)
if [ "$sum" = 3 ]; then
	echo '{"verdict": "pass", "feedback": "it adds"}'
else
	echo "{\"verdict\": \"fail\", \"feedback\": \"add.sh 1 2 printed $sum, not 3\"}"
fi
