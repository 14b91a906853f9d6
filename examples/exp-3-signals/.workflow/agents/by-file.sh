# A file counts once it is whole: write it elsewhere, then rename it. `sluice signal X-1` does this too.
set -e
echo one > a.txt
folder=$(dirname "$SLUICE_SIGNAL")
mkdir -p "$folder"
printf '{"step": "X-1", "status": "done", "summary": "wrote a.txt"}\n' > "$folder/.X-1-done.tmp"
mv "$folder/.X-1-done.tmp" "$SLUICE_SIGNAL"
