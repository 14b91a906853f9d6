package prompt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/internal/settings"
)

// TestRead: what the settings name holds before the project's own, and that before what is built in. Who judges
// never takes the template of one who works.
func TestRead(t *testing.T) {
	root := t.TempDir()
	for name, body := range map[string]string{
		".workflow/prompts/reviewer.md": "judge", ".workflow/prompts/fixer.md": "fix", ".workflow/prompts/critic.md": "criticize",
		".workflow/named.md": "named", "below/root.md": "of the root", "below/bad.md": "one\n${{ tsak }}",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		role, named string
		judges      bool
		want, fault string
	}{
		{role: "fixer", want: "fix"},
		{role: "fixer", judges: true, want: "judge"},
		{role: "critic", judges: true, want: "criticize"},
		{role: "security", judges: true, want: "judge"},
		{role: "planner", want: ""},
		{role: "fixer", named: "named.md", want: "named"},
		{role: "fixer", named: "below/root.md", want: "of the root"},
		{role: "fixer", named: "none.md", fault: "role fixer: prompt_file none.md: "},
		{role: "fixer", named: "below/bad.md", want: "one\n${{ tsak }}", fault: "below/bad.md:2:1: ${{ tsak }}: no such placeholder"},
	} {
		s := settings.Settings{Roles: map[string]settings.Role{c.role: {PromptFile: c.named}}}
		got, faults := Read(s, root, c.role, c.judges)
		if got.Text != c.want {
			t.Errorf("%+v: %q", c, got.Text)
		}
		if n := len(faults); n > 1 || (c.fault != "") != (n == 1) || n == 1 && !strings.Contains(faults[0].Error(), c.fault) {
			t.Errorf("%+v: faults %v", c, faults)
		}
	}
}
