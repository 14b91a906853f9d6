package gates

import (
	"slices"
	"strings"
	"testing"

	"sluice/engine"
)

// TestImports: what instructions have a program read is found as the program finds it.
func TestImports(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"CLAUDE.md", "See @docs/rules.md and\n@./AGENTS.md\n- a@b.c, `x`@y, @~/own.md, @http://x/y", "docs/rules.md AGENTS.md"},
		{"sub/CLAUDE.md", "@x.md @../y.md#part @/etc/z.md @docs/rules.md.", "sub/x.md y.md /etc/z.md sub/docs/rules.md."},
		{"x/opencode.jsonc", `{"a": ["no"], "instructions": ["docs/*.md", "c.md", "https://x/y.md"], "b": ["neither"]}`, "x/a x/no x/instructions x/c.md x/b x/neither x/docs/*.md"},
		{"sub/.claude/settings.json", `{"hooks": [{"command": "sh \"$CLAUDE_PROJECT_DIR\"/scripts/hook.sh --all"}], "allow": ["Read(src/**)", "Bash(npm test:*)"]}`,
			"sub/hooks sub/command sub/sh sub/scripts/hook.sh sub/--all sub/allow"},
		{".codex/config.toml", "[mcp_servers.a]\ncommand = 'python3'\nargs = [\"tools/mcp.py\"]\n", "python3 tools/mcp.py"},
		{"package.json", `{"x": "y.js"}`, ""},
	} {
		if got := strings.Join(Imports(c.file, c.text), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.file, got, c.want)
		}
	}
	for file, want := range map[string]bool{"CLAUDE.md": true, "a/GEMINI.md": true, ".claude/rules/x.md": true, ".mcp.json": true, "a/.gemini/settings.json": true, ".claude/x/y.json": false, "README.md": false, "a/CLAUDE.md.txt": false} {
		if Instructs(file) != want {
			t.Errorf("%s: %v", file, !want)
		}
	}
	l := LawOf(&engine.Spec{}, nil, nil, nil, Bases{Root: "/r", Top: "/w", Dir: "/w"})
	l.Read([]string{"docs/rules.md", "team/*.md"})
	if got := l.Guarded(strings.Fields("docs/rules.md docs/other.md team/x.md team/x.go"), []string{"docs/rules.md"}); !slices.Equal(got, strings.Fields("docs/rules.md team/x.md")) {
		t.Errorf("%q", got)
	}
}
