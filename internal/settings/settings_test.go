package settings

import (
	"strings"
	"testing"
	"time"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/tools/conform"
)

func TestDefaultSettingsAreGood(t *testing.T) {
	if faults := Default().Check(); len(faults) > 0 {
		t.Errorf("%v", faults)
	}
	if warnings := Default().Warnings(); len(warnings) > 0 {
		t.Errorf("%v", warnings)
	}
	c, want := Default().Engine(), engine.DefaultConfig()
	if c.Trust != engine.TrustFile || c.MaxParallel != want.MaxParallel || c.Grace != want.Grace || c.Timeout != want.Timeout || c.Remind != want.Remind || c.Restarts != want.Restarts || c.VetoWindow != want.VetoWindow || c.Linger != want.Linger || c.PRPoll != want.PRPoll {
		t.Errorf("%+v", c)
	}
}

func TestSettingsCheck(t *testing.T) {
	conform.Rule(t, "7-agents faults", "each fault in words")
	minus := -1
	for want, change := range map[string]func(*Settings){
		"roles.x.agent: \"clade\" is not an agent": func(s *Settings) { s.Roles["x"] = Role{Agent: []string{"clade"}} },
		"did you mean claude?":                     func(s *Settings) { s.Roles["x"] = Role{Agent: []string{"clade"}} },
		"roles.x.agent: empty":                     func(s *Settings) { s.Roles["x"] = Role{} },
		"roles.-x: no name":                        func(s *Settings) { s.Roles["-x"] = Role{Agent: []string{"claude"}} },
		"prompt_file: \"../x\" leads out":          func(s *Settings) { s.Roles["x"] = Role{Agent: []string{"claude"}, PromptFile: "../x"} },
		"roles.x: timeout, idle_timeout":           func(s *Settings) { s.Roles["x"] = Role{Agent: []string{"claude"}, Restarts: &minus} },
		"roles.x.model":                            func(s *Settings) { s.Roles["x"] = Role{Agent: []string{"claude"}, Model: "-o"} },
		"roles.x.args[1]: a NUL":                   func(s *Settings) { s.Roles["x"] = Role{Agent: []string{"claude"}, Args: []string{"--tools", "a\x00b"}} },
		"roles.x.args[0]: ${{model}}":              func(s *Settings) { s.Roles["x"] = Role{Agent: []string{"claude"}, Args: []string{"${{model}}"}} },
		"roles.x.args: more than 100":              func(s *Settings) { s.Roles["x"] = Role{Agent: []string{"claude"}, Args: make([]string, 101)} },
		"roles.x.args: 65537 bytes": func(s *Settings) {
			s.Roles["x"] = Role{Agent: []string{"claude"}, Args: []string{"-" + strings.Repeat("x", 64<<10)}}
		},
		"roles.x.args: --output-format=text: agent claude is of the format claude, and sluice sets what it prints": func(s *Settings) {
			s.Roles["x"] = Role{Agent: []string{"codex", "claude"}, Args: []string{"--verbos", "--output-format=text"}}
		},
		"roles.x.args: resume: agent codex": func(s *Settings) {
			s.Roles["x"] = Role{Agent: []string{"claude", "codex"}, Args: []string{"-c", "a=b", "resume"}}
		},
		"agents.a.command: empty":                      func(s *Settings) { s.Agents["a"] = Agent{} },
		"agents.a.prompt_via: \"stdn\"":                func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"x"}, PromptVia: "stdn"} },
		"did you mean stdin?":                          func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"x"}, PromptVia: "stdn"} },
		"agents.a.format: \"clade\"":                   func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"x"}, Format: "clade"} },
		"agents.a.prompt_via: \"arg\"":                 func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"x"}, Format: "claude", PromptVia: "arg"} },
		"agents.a.command[1]: ${{rle}}":                func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"x", "${{rle}}"}} },
		"agents.a.command[0]: ${{role}}: the command":  func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"${{role}}"}} },
		"agents.a.command[2]: ${{ }} has no place":     func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"sh", "-c", "x ${{model}}"}} },
		"agents.a.env: SLUICE_TOKEN":                   func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"x"}, Env: []string{"SLUICE_TOKEN"}} },
		"agents.a.env: \"A*B\"":                        func(s *Settings) { s.Agents["a"] = Agent{Command: []string{"x"}, Env: []string{"A*B"}} },
		"trust: \"sandox\"":                            func(s *Settings) { s.Trust = "sandox" },
		"max_parallel: 0":                              func(s *Settings) { s.MaxParallel = 0 },
		"max_agents: 1001":                             func(s *Settings) { s.MaxAgents = 1001 },
		"timeout: 0s":                                  func(s *Settings) { s.Timeout = 0 },
		"veto_window: -1s":                             func(s *Settings) { s.VetoWindow = engine.Duration(-time.Second) },
		"restarts: -1":                                 func(s *Settings) { s.Restarts = -1 },
		"budget.day":                                   func(s *Settings) { s.Budget.Day.MaxTokens = -1 },
		"notify.command":                               func(s *Settings) { s.Notify.Command = []string{""} },
		"notify.command: \"./page\": want an absolute": func(s *Settings) { s.Notify.Command = []string{"./page"} },
		"notify.terminal: \"b/term\": want an abs":     func(s *Settings) { s.Notify.Terminal = []string{"b/term"} },
		"sandbox.read: \"/\": a launch has its own":    func(s *Settings) { s.Sandbox.Read = []string{"//"} },
		"sandbox.read: \"/proc/1\": a launch":          func(s *Settings) { s.Sandbox.Read = []string{"/proc/1"} },
		"sandbox.write: \"/dev\": a launch":            func(s *Settings) { s.Sandbox.Write = []string{"/dev/"} },
		"sandbox.read: \"tools\": want a path":         func(s *Settings) { s.Sandbox.Read = []string{"tools"} },
	} {
		s := Default()
		change(&s)
		var all []string
		for _, err := range s.Check() {
			all = append(all, err.Error())
		}
		if !strings.Contains(strings.Join(all, "\n"), want) {
			t.Errorf("want %q among %q", want, all)
		}
	}
	s := Default()
	s.Trust, s.Rescan, s.MaxParallel = "x", 0, 0
	if n := len(s.Check()); n != 3 {
		t.Errorf("%d faults, want all three at once", n)
	}
}

func TestSettingsOfRoles(t *testing.T) {
	conform.Rule(t, "001 agent.settings", "time-out")
	conform.Rule(t, "001 agent.builtin", "codex, and claude, which plays what nobody is named for")
	s := Default()
	two := 2
	s.Roles["x"] = Role{Agent: []string{"codex"}, Timeout: engine.Duration(time.Minute), Restarts: &two}
	s.Trust = engine.TrustSigned
	c := s.Engine()
	if c.Roles["x"].Timeout != engine.Duration(time.Minute) || *c.Roles["x"].Restarts != 2 || c.Trust != engine.TrustSigned {
		t.Errorf("%+v", c)
	}
	if got := s.Role("unnamed").Agent[0]; got != "claude" {
		t.Errorf("a role not named has %s", got)
	}
	a, ok := Settings{Agents: map[string]Agent{"m": {Command: []string{"x"}}}}.Agent("m")
	if !ok || a.PromptVia != ViaStdin || a.Format != FormatText {
		t.Errorf("%+v", a)
	}
	if a, ok := (Settings{}).Agent("codex"); !ok || strings.Join(a.Command, " ") != "codex" || a.Format != program.Codex {
		t.Errorf("%+v", a)
	}
	if w := s.Warnings(); len(w) != 0 {
		t.Errorf("%v", w)
	}
}
