echo "${GITHUB_VALUE}" > title.txt
