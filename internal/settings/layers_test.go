package settings

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// world is a repo and a person's settings.
type world struct {
	t   *testing.T
	dir string
	env []string
}

func newWorld(t *testing.T) *world {
	return &world{t: t, dir: t.TempDir(), env: []string{"SLUICE_CONFIG_SANDBOX_MODE=off"}}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	file := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// own writes the person's settings file.
func (w *world) own(text string) { w.write("config/sluice/config.yaml", text) }

// read reads all layers.
func (w *world) read(set ...string) (*Layered, error) {
	return Read(filepath.Join(w.dir, "config", "sluice", "config.yaml"), w.dir, w.env, set)
}

// TestLayersInTheirOrder: each layer overrides the one before, and each value has its origin.
func TestLayersInTheirOrder(t *testing.T) {
	conform.Rule(t, "001 layers", "five layers over one another, each value with its place")
	conform.Rule(t, "7-agents layers", "each layer over the one before, and each value says where it comes from")
	w := newWorld(t)
	w.own("veto_window: 1s\ngrace: 1s\nlinger: 1s\nsettle: 1s\nroles: {builder: {agent: codex, model: x}}\nnotify: {command: [mail, me]}\n")
	w.write(".workflow/config.yaml", "grace: 2s\nlinger: 2s\nsettle: 2s\nroles:\n  builder: {model: y}\n  tester: {agent: [claude, codex], restarts: 0}\n")
	w.env = append(w.env, "SLUICE_CONFIG_LINGER=3s", "SLUICE_CONFIG_SETTLE=3s", "SLUICE_CONFIG_NOTIFY_DESKTOP=false", "SLUICE_CONFIG_BUDGET_DAY_MAX_TOKENS=7")
	s, err := w.read("settle=4s", "roles.builder.env=[A, B]", "max_parallel=2")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		got  any
		want string
	}{
		{"veto_window", s.VetoWindow, `"1s"`}, {"grace", s.Grace, `"2s"`}, {"linger", s.Linger, `"3s"`}, {"settle", s.Settle, `"4s"`},
		{"kill_after", s.KillAfter, `"10s"`}, {"desktop", s.Notify.Desktop, `false`}, {"command", s.Notify.Command, `["mail","me"]`},
		{"builder", s.Roles["builder"].Agent, `["codex"]`}, {"builder's model", s.Roles["builder"].Model, `"y"`}, {"builder's env", s.Roles["builder"].Env, `["A","B"]`},
		{"tester", s.Roles["tester"].Agent, `["claude","codex"]`}, {"tester's restarts", s.Roles["tester"].Restarts, `0`},
		{"any role", s.Roles[AnyRole].Agent, `["claude"]`}, {"max_parallel", s.MaxParallel, `2`}, {"tokens", s.Budget.Day.MaxTokens, `7`},
		{"a built-in agent", s.Agents["codex"].Command, `["codex"]`},
	} {
		if raw, _ := json.Marshal(c.got); string(raw) != c.want {
			t.Errorf("%s is %s, want %s", c.name, raw, c.want)
		}
	}
	for key, want := range map[string]string{"veto_window": "config/sluice/config.yaml:1", "grace": ".workflow/config.yaml:1", "linger": "SLUICE_CONFIG_LINGER",
		"settle": "--set", "kill_after": "built-in", "roles/builder/model": ".workflow/config.yaml:5", "roles/builder/agent": "config/sluice/config.yaml:5"} {
		if got := s.from[key].String(); !strings.HasSuffix(got, want) {
			t.Errorf("%s comes from %q, want %q", key, got, want)
		}
	}
}

// TestBuiltInSettings: the settings without any layer are the documented defaults.
func TestBuiltInSettings(t *testing.T) {
	w := newWorld(t)
	w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, EnvPrefix) })
	s, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	want, got := Default(), s.Settings
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(got)
	if string(a) != string(b) {
		t.Errorf("got  %s\nwant %s", b, a)
	}
}

// aliases is a text whose aliases stand for a thousand million values.
func aliases() string {
	out := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i <= 'i'; i++ {
		out += fmt.Sprintf("%c: &%c [%s*%c]\n", i, i, strings.Repeat(fmt.Sprintf("*%c, ", i-1), 9), i-1)
	}
	return out
}

func TestFaultsOfSettings(t *testing.T) {
	conform.Rule(t, "7-agents faults", "at its place, with the nearest key")
	for _, c := range []struct{ name, file, says string }{
		{"an unknown key", "vetto_window: 3s\n", "config.yaml:1:1: vetto_window: no such key: did you mean veto_window?"},
		{"an unknown key of a role", "roles:\n  a: {agents: claude}\n", "config.yaml:2:7: roles.a.agents: no such key: did you mean roles.a.agent?"},
		{"an unknown key of an agent", "agents:\n  a: {comand: [x]}\n", "agents.a.comand: no such key: did you mean agents.a.command?"},
		{"a doubled key", "grace: 1s\ngrace: 2s\n", "config.yaml:2:1: grace: the key appears twice"},
		{"no time", "grace: 5\n", `grace: "5": want a time such as 30s or 2h`},
		{"no number", "max_parallel: many\n", `max_parallel: "many": want a whole number`},
		{"what is the person's and no truth", "notify: {desktop: yes}\n", "notify.desktop is yours alone to set"},
		{"a command as one text", "agents: {a: {command: ./a.sh x}}\n", "agents.a.command: want a list"},
		{"a list of lists", "agents: {a: {command: [[x]]}}\n", "want a list of words"},
		{"a value where keys belong", "roles: claude\n", "roles: want keys and values"},
		{"keys where a value belongs", "grace: {a: 1}\n", "grace: want a time"},
		{"no YAML", "a: [\n", "config.yaml"},
		{"two documents", "grace: 1s\n---\ngrace: 2s\n", "config.yaml:2:1: more than one document"},
		{"a broken second document", "grace: 1s\n---\na: [\n", "config.yaml:3:1: not YAML"},
		{"a byte that is no text", "grace: 1s\nlinger: \xff\n", "config.yaml:2:1: not YAML: invalid leading UTF-8 octet"},
		{"lists in lists", "grace: 1s\nlinger: " + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "\n", "config.yaml:2:9: linger: want a time"},
		{"lists deeper than are read", "grace: 1s\nlinger: " + strings.Repeat("[", 20_000) + "\n", "config.yaml:2:1: not YAML: exceeded max depth"},
		{"a list in itself", "grace: &a [*a]\n", "config.yaml:1:8: grace: want a time"},
		{"aliases of aliases", aliases(), "config.yaml:1:1: a: no such key: did you mean agents? (and 8 faults more)"},
		{"too many values", "roles:\n" + strings.Repeat("  ? a\n", 10_001), "config.yaml:10001:5: more than 10000 values"},
		{"an agent that is none", "roles: {a: {agent: claud}}\n", `roles.a.agent: "claud" is not an agent`},
		{"a number beyond its bounds", "max_parallel: 0\n", "config.yaml:1: max_parallel: 0: want 1 to 1000"},
		{"the person's own key", "notify: {command: [evil]}\n", "notify.command is yours alone to set"},
		{"the person's other key", "notify: {webhook: http://x}\n", "notify.webhook is yours alone to set"},
		{"a key below it", "notify: {webhook: {url: \"https://evil.example\"}}\n", "notify.webhook.url is yours alone to set"},
		{"the person's terminal", "notify: {terminal: [evil]}\n", "notify.terminal is yours alone to set"},
		{"who is told late", "notify: {escalate: {after: 99, to: [desktop]}}\n", "notify.escalate.after is yours alone to set"},
		{"what loosens, and what is wrong besides", "veto_window: 1s\nmax_parallel: 0\nrestarts: -1\n", "config.yaml:1: veto_window: 1s asks for less than 30s (built-in): a project's file can only tighten: remove it there, or set veto_window in your own file (and 2 faults more)"},
		{"an anchor", "grace: &a 1s\nlinger: *a\n", "linger: want a time"},
		{"too large", "# " + strings.Repeat("x", maxSettingsBytes) + "\n", "too large"},
	} {
		w := newWorld(t)
		w.write(".workflow/config.yaml", c.file)
		_, err := w.read()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q", c.name, err, c.says)
		}
	}
}

// TestRoleWithoutAgent: a role's other settings do not require its agent.
func TestRoleWithoutAgent(t *testing.T) {
	w := newWorld(t)
	w.write(".workflow/config.yaml", "agents: {mine: {command: [./a.sh]}}\nroles: {\"*\": {agent: mine}, a: {network: none}}\n")
	s, err := w.read()
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Roles["a"].Agent; len(got) != 1 || got[0] != "mine" {
		t.Errorf("played by %v, want mine", got)
	}
	w.write(".workflow/config.yaml", "roles: {a: {agent: []}}\n")
	if _, err := w.read(); err == nil || !strings.Contains(err.Error(), "roles.a.agent: empty") {
		t.Errorf("an empty list: %v", err)
	}
}

// TestAFileThatIsALinkIsNoSettings: only a regular file is read.
func TestAFileThatIsALinkIsNoSettings(t *testing.T) {
	w := newWorld(t)
	w.write("elsewhere.yaml", "veto_window: 7s\n")
	if err := os.MkdirAll(filepath.Join(w.dir, ".workflow"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../elsewhere.yaml", filepath.Join(w.dir, ".workflow", "config.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.read(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
}

func FuzzSettings(f *testing.F) {
	for _, s := range []string{"veto_window: 1s\n", "roles:\n  a: {agent: [claude]}\n", "a: &x [*x]\n", "? [a]\n: b\n", "\xff", "notify: {desktop: ~}\n", "agents: {\"a/b\": {command: [x]}}\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l, _, faults := fileLayer(file, true)
		if len(faults) > 0 {
			return
		}
		s, err := merge([]layer{builtInLayer(), l}, nil)
		if err == nil && (len(s.Notify.Command) > 0 || s.Notify.Webhook.URL != "" || len(s.Notify.Terminal) > 0 || s.Notify.Escalate.After > 0) {
			t.Fatalf("the project's file set what is the person's: %q", data)
		}
	})
}

// TestSettingsOfAFormerAgent: what was written for opencode before it was built in still loads,
// also from a project's file.
func TestSettingsOfAFormerAgent(t *testing.T) {
	for _, c := range []struct{ own, project, want string }{
		{"", "agents:\n  opencode: {command: [opencode, run], prompt_via: arg}\n", "[opencode] stdin opencode"},
		{"agents: {opencode: {command: [opencode, run], prompt_via: arg, env: [OPENCODE_X]}}\n", "", "[opencode] stdin opencode"},
		{"agents: {opencode: {command: [opencode, run, --agent, x], prompt_via: arg}}\n", "", "[opencode run --agent x] arg text"},
		{"agents: {opencode: {command: [opencode, --variant, high]}}\n", "", "[opencode --variant high] stdin opencode"},
	} {
		w := newWorld(t)
		w.own(c.own)
		w.write(".workflow/config.yaml", c.project)
		s, err := w.read()
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if a := s.Settings.Agents["opencode"]; fmt.Sprintf("%v %s %s", a.Command, a.PromptVia, a.Format) != c.want {
			t.Errorf("%+v: %+v", c, a)
		}
	}
}
