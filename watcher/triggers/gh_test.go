package triggers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestGH: issues as gh prints them, and what is said of a gh that fails, hangs, or prints nonsense.
func TestGH(t *testing.T) {
	dir := t.TempDir()
	g := GH{Address: func(context.Context) (string, error) { return "https://forge.example/a/b", nil }, Environ: os.Environ()}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ask := func(script string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "gh"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		got, err := g.Open(ctx, []string{"agent", "--web"}, "me", 2)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%+v", got)
	}
	const list = `[{"number": 7, "title": "'; rm -rf /", "body": "b", "url": "u", "author": {"login": "eve"}, "labels": [{"name": "agent"}]},
{"number": 0}, {"number": 8}, {"number": 9}]`
	for script, want := range map[string]string{
		"cat <<'E'\n" + list + "\nE": "[{Number:7 Title:'; rm -rf / Body:b URL:u Author:eve Labels:[agent] Trusted:false} {Number:8 ",
		`test "$*" = "issue list --repo https://forge.example/a/b --state open --limit 2 --json number,title,body,url,author,labels ` +
			`--label=agent --label=--web --assignee=@me" && echo "[]"`: "[]",
		"echo 'HTTP 401: Bad credentials' >&2; exit 1": "gh could not list the issues: exit status 1: HTTP 401: Bad credentials",
		"echo hello":                "gh did not list issues",
		"head -c 9000000 /dev/zero": "more than 8 MiB",
		"exec sleep 60":             "not answered in time",
	} {
		if got := ask(script); !strings.HasPrefix(got, want) && !strings.Contains(got, want) {
			t.Errorf("%.60s: %.200s, want %s", script, got, want)
		}
	}
}
