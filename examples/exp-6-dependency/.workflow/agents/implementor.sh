set -e
case $SLUICE_STEP in
X-2) echo "add A B prints A + B" > docs/api.md ;;
Y-1) { echo "made from:"; cat docs/api.md; } > client.txt ;;
esac
