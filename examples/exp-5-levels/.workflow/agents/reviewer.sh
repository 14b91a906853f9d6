if [ -s part.txt ]; then
	echo '{"verdict": "pass", "feedback": "it is there"}'
else
	echo '{"verdict": "fail", "feedback": "part.txt is empty"}'
fi
