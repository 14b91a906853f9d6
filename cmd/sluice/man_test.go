package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command that the help shows has a page, and nothing in a text is taken for an order to the program that sets it.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var out bytes.Buffer
	if code := run(t.Context(), []string{"man", dir}, []string{"SOURCE_DATE_EPOCH=1800000000"}, strings.NewReader(""), &out, &out); code != 0 {
		t.Fatalf("exit %d: %s", code, out.String())
	}
	order := regexp.MustCompile(`^\.(TH|SH|TP|B|BR|nf|fi)\s`)
	var look func(cmd *cobra.Command)
	pages := 0
	look = func(cmd *cobra.Command) {
		raw, err := os.ReadFile(filepath.Join(dir, manName(cmd)+".1"))
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		text := string(raw)
		if !strings.HasPrefix(text, ".TH "+strings.ToUpper(strings.ReplaceAll(manName(cmd), "-", `\-`))+" 1 2027-01-15 ") {
			t.Errorf("%s begins %q", manName(cmd), strings.SplitN(text, "\n", 2)[0])
		}
		for l := range strings.Lines(text) {
			if (strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'")) && !order.MatchString(l) {
				t.Errorf("%s: %q is no text", manName(cmd), l)
			}
		}
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				look(c)
			}
		}
	}
	root := rootCommand(newApp(nil, strings.NewReader(""), &out, &out))
	look(root)
	if files, _ := filepath.Glob(filepath.Join(dir, "*")); len(files) != pages {
		t.Errorf("%d files for %d commands", len(files), pages)
	}
	if got := roff(".dot\n'quote\n--flag a\\b"); got != `\&.dot`+"\n"+`\&'quote`+"\n"+`\-\-flag a\eb` {
		t.Errorf("%q", got)
	}
}
