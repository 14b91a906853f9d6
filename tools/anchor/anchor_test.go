package anchor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestApply(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{
		"a.go":      "package p\n\ntype T struct{ n int }\n\nfunc (t *T) add() { t.n++ }\n\nfunc add() { _ = 1 }\n\nconst most = 3\n",
		"b.go":      "package p\n\nfunc other() { t := T{}; t.n++ }\n",
		"b_test.go": "package p\n\nfunc add() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(src), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := Apply(dir, []Edit{{"T.add", "t.n++", "t.n--"}, {"most", "3", "4"}, {"other", "t.n++", ""}})
	if err != nil || len(out) != 2 || !strings.Contains(string(out["a.go"]), "{ t.n-- }") || !strings.Contains(string(out["a.go"]), "most = 4") || strings.Contains(string(out["b.go"]), "t.n++") {
		t.Errorf("%v %s", err, out)
	}
	for e, want := range map[Edit]string{
		{"T.sub", "x", "y"}:   "T.sub is declared 0 times",
		{"T.add", "t.m", ""}:  "occurs 0 times in T.add of a.go",
		{"other", "t", ""}:    "times in other of b.go, want once",
		{"T", "struct", "in"}: "",
	} {
		if _, err := Apply(dir, []Edit{e}); want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", e, err, want)
		}
	}
}
