# Imported: what Archon puts into this text comes by the environment.
: "${ARTIFACTS_DIR:=$SLUICE_FILES}"
WORKFLOW_ID=$SLUICE_RUN
export ARTIFACTS_DIR WORKFLOW_ID
set -e
echo "asked: $ARGUMENTS"
gh issue view "$ARGUMENTS" --json title
