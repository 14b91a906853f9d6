gh label list --json name > labels.json
