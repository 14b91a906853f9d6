package journal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// recipe returns the code block of FORMAT.md in the given language.
func recipe(t *testing.T, lang string) string {
	t.Helper()
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(doc), "```"+lang+"\n")
	code, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatal("FORMAT.md has no recipe in", lang)
	}
	return code
}

// The document's own check accepts what this package writes, and nothing that was changed.
func TestPythonRecipeOfTheFormat(t *testing.T) {
	conform.Rule(t, "2-files journal format", "another program verifies it by the document")
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs: python3")
	}
	dir := t.TempDir()
	l := mustOpen(t, dir, nil)
	for i := range 40 {
		mustAppend(t, l, entry(i))
	}
	_, sum := l.Last()
	script, name := filepath.Join(dir, "check.py"), filepath.Join(dir, FileName)
	if err := os.WriteFile(script, []byte(recipe(t, "python")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(python, script, name).CombinedOutput()
	if want := "40 records, the last with sum " + sum + "\n"; err != nil || string(out) != want {
		t.Fatalf("%v: %s, want %s", err, out, want)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for at := 37; at < len(data); at += len(data) / 12 {
		bad := flipped(data, at)
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(python, script, name).CombinedOutput(); err == nil {
			t.Errorf("byte %d changed: %s", at, out)
		}
	}
	if err := os.WriteFile(name, data[:len(data)-9], 0o600); err != nil {
		t.Fatal(err)
	}
	out, err = exec.Command(python, script, name).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "unfinished line") || !strings.Contains(string(out), "39 records") {
		t.Fatalf("%v: %s", err, out)
	}
}

func TestShellRecipeOfTheFormat(t *testing.T) {
	conform.Rule(t, "2-files journal format", "a shell verifies it by the document")
	for _, tool := range []string{"sh", "sed", "head", "sha256sum", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs: " + tool)
		}
	}
	dir := t.TempDir()
	l := mustOpen(t, dir, nil)
	for i := range 20 {
		mustAppend(t, l, entry(i))
	}
	cmd := exec.Command("sh", "-c", recipe(t, "sh"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	words := strings.Fields(strings.ReplaceAll(string(out), " -", ""))
	if err != nil || len(words) != 4 || words[0] != words[1] || words[2] != words[3] {
		t.Fatalf("%v: %s", err, out)
	}
}

// The document has the same limits and names as the code.
func TestFormatNamesTheLimits(t *testing.T) {
	conform.Rule(t, "2-files journal format", "the document names the limits the code has")
	doc, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		FileName, "at most 4 MiB (4,194,304 bytes", fmt.Sprintf("at most %d lines and %d MiB", MaxBatchEntries, MaxBatchBytes>>20),
		fmt.Sprintf("last %d\nbytes", sumLen), fmt.Sprintf("%d digits>`", snapshotDigits), fmt.Sprintf("(%d characters)", len(atLayout)),
	} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("FORMAT.md does not say %q", want)
		}
	}
	if MaxLineBytes != 4_194_304 || KeptSnapshots != 2 {
		t.Error("FORMAT.md says otherwise")
	}
}
