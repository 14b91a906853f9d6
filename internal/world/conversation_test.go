//go:build linux || darwin

package world

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/tools/conform"
)

// TestConversation: the newest conversation of an attempt is found, with what its program needs to find it; a name that a
// shell would take for something else is none, and what the agent writes beside its output changes nothing.
func TestConversation(t *testing.T) {
	conform.Rule(t, "7-agents takeover", "the conversation is the attempt's own, and its name is plain")
	for name, c := range map[string]struct{ id, want string }{
		"its own":      {"0b1c-22", "0b1c-22"},
		"a command":    {"x; touch pwned", ""},
		"an option":    {"--dangerously-skip-permissions", ""},
		"substitution": {"$(touch pwned)", ""},
		"a path":       {"../../x", ""},
		"none":         {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, toldSpec)
			b.claude(`echo '{"agent":"evil","format":"codex","env":{"CLAUDE_CONFIG_DIR":"/evil"}}' >"$(dirname "$SLUICE_ANSWER")/agent.json"
echo '{"type":"system","subtype":"init","session_id":"` + c.id + `"}'` + "\n" + toldGood2)
			b.carry(b.stepJob("A", 1, 1))
			got, err := launch.FindConversation(b.root, b.state, run1, "A", 1, 1)
			if err != nil || got.Session != c.want || got.Agent != "claude" || got.Dir != b.root || got.Env != nil {
				t.Errorf("%+v %v", got, err)
			}
			if want := "claude --resume " + c.want; c.want != "" && strings.Join(got.Argv, " ") != want || c.want == "" && got.Argv != nil {
				t.Errorf("%q", got.Argv)
			}
			if got, err := launch.FindConversation(b.root, b.state, run1, "A", 1, 3); err != nil || got.Session != c.want {
				t.Errorf("of later launches that had none: %+v %v", got, err) // they were refused, or ended before they began
			}
		})
	}
}

const toldGood2 = `echo '{"type":"result","subtype":"success","result":"Done.","usage":{"input_tokens":9}}'` + "\n"

// TestConversationImport: of a held agent's private home only the transcript is copied; never through a link, and never over
// what a person has gone on with.
func TestConversationImport(t *testing.T) {
	conform.Rule(t, "7-agents takeover", "nothing of a held agent's home but the transcript reaches the person's")
	for _, c := range []struct{ format, below, file string }{
		{"claude", ".claude", "projects/-repo/s-1.jsonl"},
		{"codex", ".codex", "sessions/2026/01/02/rollout-2026-01-02T03-04-05-s-1.jsonl"},
	} {
		t.Run(c.format, func(t *testing.T) {
			home, mine := t.TempDir(), t.TempDir()
			put := func(base, rel, text string) string {
				at := filepath.Join(base, filepath.FromSlash(rel))
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return at
			}
			get := func() string {
				data, _ := os.ReadFile(filepath.Join(mine, c.below, filepath.FromSlash(c.file))) // "" where it is not there
				return string(data)
			}
			env := func(name string) string {
				if name == "HOME" {
					return mine
				}
				return ""
			}
			talk := launch.Conversation{Format: c.format, Session: "s-1", Home: home}
			if err := talk.Import(env); err == nil {
				t.Error("there is none, and that is not told")
			}
			from := put(home, c.below+"/"+c.file, "one\n")
			put(home, c.below+"/settings.json", `{"hooks":{}}`)
			put(home, c.below+"/config.toml", `notify = ["sh"]`)
			if err := talk.Import(env); err != nil || get() != "one\n" {
				t.Fatalf("%q %v", get(), err)
			}
			found := 0
			_ = filepath.WalkDir(mine, func(_ string, d os.DirEntry, _ error) error {
				if !d.IsDir() {
					found++
				}
				return nil
			})
			if found != 1 {
				t.Errorf("%d files were copied", found)
			}
			put(home, c.below+"/"+c.file, "one\ntwo\n")
			if err := talk.Import(env); err != nil || get() != "one\ntwo\n" {
				t.Errorf("it went on: %q %v", get(), err)
			}
			put(mine, c.below+"/"+c.file, "one\ntwo\nmine\n")
			if err := talk.Import(env); err == nil || get() != "one\ntwo\nmine\n" {
				t.Errorf("a person's own: %q %v", get(), err)
			}
			secret := put(t.TempDir(), "secret", "s3cret")
			if err := os.Remove(from); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(secret, from); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(mine, c.below, filepath.FromSlash(c.file))); err != nil {
				t.Fatal(err)
			}
			if err := talk.Import(env); err == nil || get() != "" {
				t.Errorf("through a link: %q %v", get(), err)
			}
		})
	}
}
