package settings

import (
	"fmt"
	"maps"
	"math"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sluice/agents/egress"
	"sluice/agents/program"
	"sluice/agents/sandbox"
	"sluice/engine"
	"sluice/internal/ids"
	"sluice/internal/shells"
	"sluice/internal/text"
	"sluice/notify"
)

// Limits of the settings.
const (
	maxNamed = 200 // agents, and roles
	maxArgs  = 200 // of a command

	maxRoleArgs     = 100      // of a role
	maxRoleArgBytes = 64 << 10 // of these together
	maxWorkers      = 1000
)

// Check returns all faults of the settings, each with what to do.
func (s Settings) Check() []error {
	c := checker{s: s, variable: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*\*?$`)}
	c.agents()
	c.roles()
	c.numbers()
	c.sandbox()
	levels := []string{"auto", engine.TrustFile, engine.TrustSandbox, engine.TrustSigned}
	if s.Trust != "" && !slices.Contains(levels, s.Trust) {
		c.fault("trust: %q: want auto, file, sandbox or signed%s", s.Trust, near(s.Trust, levels))
	}
	c.notify()
	c.web()
	return c.faults
}

// web checks where the page is. One that other devices reach needs a name and its certificate.
func (c *checker) web() {
	w := c.s.Web
	if _, port, err := net.SplitHostPort(w.Listen); w.Listen != "" && (err != nil || port == "") {
		c.fault("web.listen: %q: want host:port, as in 127.0.0.1:7467", w.Listen)
	}
	if w.Name != "" && (w.Cert == "" || w.Key == "") {
		c.fault("web.name: %s needs TLS: set web.cert and web.key too", w.Name)
	}
	for key, file := range map[string]string{"web.cert": w.Cert, "web.key": w.Key} {
		if file != "" && !filepath.IsAbs(file) {
			c.fault("%s: %q: want an absolute path", key, file)
		}
	}
}

// Warnings returns settings that this release cannot enforce: budgets of roles with an agent that does
// not report its cost.
func (s Settings) Warnings() []string {
	var out []string
	b := s.Budget
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		r := s.Roles[name]
		cost := r.MaxCostUSD > 0 || b.Attempt.MaxCostUSD > 0 || b.Day.MaxCostUSD > 0
		tokens := r.MaxTokens > 0 || b.Attempt.MaxTokens > 0 || b.Day.MaxTokens > 0
		for _, agent := range r.Agent {
			switch a, _ := s.Agent(agent); {
			case program.Known(a.Format) && !program.TellsCost(a.Format) && cost && !tokens:
				out = append(out, fmt.Sprintf("roles.%s: agent %s reports tokens, but no cost: max_cost_usd cannot limit it: "+
					"set max_tokens", name, agent))
			case !program.Known(a.Format) && (cost || tokens):
				out = append(out, fmt.Sprintf("roles.%s: agent %s is of the format %s, which reports no cost: only its "+
					"time-outs and max_steps limit it", name, agent, a.Format))
			}
		}
	}
	return out
}

type checker struct {
	s        Settings
	faults   []error
	variable *regexp.Regexp // the name of a variable, or its beginning and a *; compiled once, as each command checks
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// near returns the end of a message with the name that was probably meant.
func near(name string, known []string) string {
	if n := text.Nearest(name, known); n != "" {
		return fmt.Sprintf(" (did you mean %s?)", n)
	}
	return ""
}

func (c *checker) agents() {
	if len(c.s.Agents) > maxNamed || len(c.s.Roles) > maxNamed {
		c.fault("agents, roles: more than %d: name fewer", maxNamed)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.s.Agents)) {
		a, _ := c.s.Agent(name)
		at := "agents." + name
		if !ids.Valid(name) {
			c.fault("%s: no name for an agent: want letters, digits, '.', '_' and '-', at most 64", at)
		}
		if len(a.Command) == 0 || a.Command[0] == "" {
			c.fault("%s.command: empty: say how to launch it, as in [./agent.sh, \"${{role}}\"]", at)
		}
		if len(a.Command) > maxArgs {
			c.fault("%s.command: more than %d arguments: use a script", at, maxArgs)
		}
		for i, arg := range a.Command {
			c.argument(fmt.Sprintf("%s.command[%d]", at, i), i, arg)
		}
		for _, i := range shells.CodeArgs(a.Command) {
			if strings.Contains(a.Command[i], "${{") {
				c.fault("%s.command[%d]: ${{ }} has no place in what a program runs as code: give it as an argument of its own "+
					"after the text (\"$1\" in a shell), or read $SLUICE_ROLE or $SLUICE_PROMPT", at, i)
			}
		}
		if vias := []string{ViaStdin, ViaArg, ViaFile}; !slices.Contains(vias, a.PromptVia) {
			c.fault("%s.prompt_via: %q: want stdin, arg or file%s", at, a.PromptVia, near(a.PromptVia, vias))
		}
		if formats := append([]string{FormatText}, program.Names()...); !slices.Contains(formats, a.Format) {
			last := len(formats) - 1
			c.fault("%s.format: %q: want %s or %s%s", at, a.Format, strings.Join(formats[:last], ", "),
				formats[last], near(a.Format, formats))
		}
		if program.Known(a.Format) && a.PromptVia != ViaStdin {
			c.fault("%s.prompt_via: %q: an agent of the format %s reads its prompt on its standard input: want stdin", at,
				a.PromptVia, a.Format)
		}
		c.patterns(at+".env", a.Env)
	}
}

// argument checks the placeholders in an element of a command.
func (c *checker) argument(at string, i int, arg string) {
	if strings.ContainsRune(arg, 0) {
		c.fault("%s: a NUL byte: remove it", at)
	}
	if !strings.Contains(arg, "${{") {
		return
	}
	for _, m := range regexp.MustCompile(`\$\{\{([^}]*)\}\}`).FindAllStringSubmatch(arg, -1) {
		known := []string{"role", "model", "prompt_file"}
		name := strings.TrimSpace(m[1])
		if !slices.Contains(known, name) {
			c.fault("%s: ${{%s}}: want role, model or prompt_file%s", at, m[1], near(name, known))
		}
		if i == 0 {
			c.fault("%s: ${{%s}}: the command itself has a fixed name: give the value as an argument", at, m[1])
		}
	}
}

// patterns checks names of variables that are passed on.
func (c *checker) patterns(at string, names []string) {
	for _, p := range names {
		switch {
		case strings.HasPrefix(p, "SLUICE_"):
			c.fault("%s: %s: SLUICE_* is set by sluice alone: remove it", at, p)
		case !c.variable.MatchString(p):
			c.fault("%s: %q: want the name of a variable, or the beginning of one and a *", at, p)
		}
	}
}

func (c *checker) roles() {
	agents := builtin()
	maps.Copy(agents, c.s.Agents)
	known := slices.Sorted(maps.Keys(agents))
	for _, name := range slices.Sorted(maps.Keys(c.s.Roles)) {
		r := c.s.Roles[name]
		at := "roles." + name
		if name != AnyRole && !ids.Valid(name) {
			c.fault("%s: no name for a role: want letters, digits, '.', '_' and '-', at most 64, or \"*\"", at)
		}
		if len(r.Agent) == 0 {
			c.fault("%s.agent: empty: name an agent (%s)", at, strings.Join(known, ", "))
		}
		for _, a := range r.Agent {
			if _, ok := c.s.Agent(a); !ok {
				c.fault("%s.agent: %q is not an agent: want one of %s%s", at, a, strings.Join(known, ", "),
					near(a, known))
			}
		}
		if r.PromptFile != "" && !filepath.IsLocal(filepath.FromSlash(r.PromptFile)) {
			c.fault("%s.prompt_file: %q leads out of the repo: name a file below .workflow/ or the root", at,
				r.PromptFile)
		}
		if strings.ContainsRune(r.Model, 0) || strings.HasPrefix(r.Model, "-") {
			c.fault("%s.model: %q: not a name of a model", at, r.Model)
		}
		if r.Timeout < 0 || r.IdleTimeout < 0 || r.MaxCostUSD < 0 || r.MaxTokens < 0 || r.Restarts != nil &&
			*r.Restarts < 0 {
			c.fault("%s: timeout, idle_timeout, restarts, max_cost_usd and max_tokens must not be negative", at)
		}
		if why := ids.LabelsFault(r.On, 0); why != "" {
			c.fault("%s.on: %s", at, why)
		}
		c.roleArgs(at+".args", r)
		c.network(at+".network", r.Network)
		c.patterns(at+".env", r.Env)
	}
}

// roleArgs checks what a role adds to the commands of its agents.
func (c *checker) roleArgs(at string, r Role) {
	if len(r.Args) > maxRoleArgs {
		c.fault("%s: more than %d arguments: use a script as the agent's command", at, maxRoleArgs)
	}
	if n := len(strings.Join(r.Args, "")); n > maxRoleArgBytes {
		c.fault("%s: %d bytes: want at most %d: put long texts into a file that the agent reads", at, n,
			maxRoleArgBytes)
	}
	for i, arg := range r.Args {
		switch {
		case strings.ContainsRune(arg, 0):
			c.fault("%s[%d]: a NUL byte: remove it", at, i)
		case strings.Contains(arg, "${{"):
			c.fault("%s[%d]: %s: values are not filled in here: write it out, or put ${{role}}, ${{model}} or "+
				"${{prompt_file}} into the agent's command", at, i, arg)
		}
	}
	for _, name := range r.Agent {
		a, known := c.s.Agent(name)
		if !known || len(a.Command) == 0 {
			continue // reported already
		}
		if arg, why := program.Refused(a.Format, r.Args); why != "" {
			c.fault("%s: %s: agent %s is of the format %s, and %s", at, arg, name, a.Format, why)
		}
	}
}

func (c *checker) numbers() {
	s := c.s
	for _, n := range []struct {
		key string
		n   int
	}{{"max_parallel", s.MaxParallel}, {"max_agents", s.MaxAgents}} {
		if n.n < 1 || n.n > maxWorkers {
			c.fault("%s: %d: want 1 to %d", n.key, n.n, maxWorkers)
		}
	}
	if s.Restarts < 0 {
		c.fault("restarts: %d: must not be negative", s.Restarts)
	}
	for _, d := range []struct {
		key  string
		d    engine.Duration
		zero bool // 0 is allowed
	}{
		{"veto_window", s.VetoWindow, true}, {"notify.remind", s.Notify.Remind, true}, {"rescan", s.Rescan, false},
		{"grace", s.Grace, true}, {"linger", s.Linger, true}, {"settle", s.Settle, false}, {"kill_after",
			s.KillAfter, false},
		{"pr_poll", s.PRPoll, false}, {"timeout", s.Timeout, false}, {"idle_timeout", s.IdleTimeout, true},
	} {
		if d.d < 0 || d.d == 0 && !d.zero {
			c.fault("%s: %s: want a time such as 5s or 30m", d.key, d.d)
		}
	}
	if a := s.Budget.Attempt; a.MaxCostUSD < 0 || a.MaxTokens < 0 {
		c.fault("budget.attempt: must not be negative")
	}
	if d := s.Budget.Day; d.MaxCostUSD < 0 || d.MaxTokens < 0 || d.MaxLaunches < 0 || d.MaxDuration < 0 {
		c.fault("budget.day: must not be negative")
	}
}

func (c *checker) notify() {
	n := c.s.Notify
	for key, argv := range map[string][]string{"notify.command": n.Command, "notify.terminal": n.Terminal} {
		switch {
		case len(argv) == 0:
		case argv[0] == "":
			c.fault("%s: the name of the command is empty: name one, or leave %s out", key, key)
		case strings.Contains(argv[0], "/") && !filepath.IsAbs(argv[0]): // an agent could write it
			c.fault("%s: %q: want an absolute path, or the name of a program on PATH", key, argv[0])
		}
	}
	if n.Webhook.URL != "" {
		for _, err := range n.Webhook.Hook().Check() {
			c.fault("notify.webhook.%w", err)
		}
	} else if w := n.Webhook; w.Method+w.SecretEnv+w.Body != "" || len(w.Headers) > 0 {
		c.fault("notify.webhook.url: empty: say where to, or leave notify.webhook out")
	}
	if n.Escalate.After < 0 {
		c.fault("notify.escalate.after: %d: must not be negative", n.Escalate.After)
	}
	if n.Escalate.After > 0 && len(n.Escalate.To) == 0 {
		c.fault("notify.escalate.to: empty: name the channels that are notified then: command, webhook, desktop")
	}
	there := map[string]bool{notify.DesktopChannel: n.Desktop, notify.CommandChannel: len(n.Command) > 0,
		notify.WebhookChannel: n.Webhook.URL != ""}
	for _, name := range n.Escalate.To {
		switch is, known := there[name]; {
		case !known:
			c.fault("notify.escalate.to: %q: want desktop, command or webhook%s", name,
				near(name, slices.Sorted(maps.Keys(there))))
		case n.Escalate.After == 0:
			c.fault("notify.escalate.after: missing: say after how many reminders %s is notified", name)
		case !is:
			c.fault("notify.escalate.to: %s: it is not set up: set notify.%s too", name, name)
		}
	}
}

func (c *checker) network(at string, hosts []string) {
	for _, h := range hosts {
		switch {
		case (h == NetworkNone || h == NetworkHost) && len(hosts) > 1:
			c.fault("%s: %s must be the only one", at, h)
		case h == NetworkWeb || h == NetworkNone || h == NetworkHost:
		default:
			if _, _, err := egress.SplitHost(h); err != nil {
				c.fault("%s: %v; or one of web, none, host", at, err)
			}
		}
	}
}

func (c *checker) sandbox() {
	s := c.s.Sandbox
	modes := []string{SandboxAuto, SandboxOn, SandboxOff}
	if !slices.Contains(modes, s.Mode) && s.Mode != "" {
		c.fault("sandbox.mode: %q: want auto, on or off%s", s.Mode, near(s.Mode, modes))
	}
	if s.Mode == SandboxOff && (c.s.Trust == engine.TrustSandbox || c.s.Trust == engine.TrustSigned) {
		c.fault("trust: %s wants a sandbox, and sandbox.mode is off: turn it on, or have trust: file", c.s.Trust)
	}
	if s.MaxHomeGB < 0 || math.IsNaN(s.MaxHomeGB) {
		c.fault("sandbox.max_home_gb: %v: want a number of gigabytes; 0 means no limit", s.MaxHomeGB)
	}
	for key, paths := range map[string][]string{"sandbox.read": s.Read, "sandbox.write": s.Write} {
		for _, p := range paths {
			if !filepath.IsAbs(p) && !strings.HasPrefix(p, "~/") || strings.ContainsRune(p, 0) {
				c.fault("%s: %q: want a path such as ~/.rustup or /opt/tools", key, p)
			} else if p = filepath.Clean(p); p == "/" || sandbox.Inside("/proc", p) || sandbox.Inside("/dev", p) {
				c.fault("%s: %q: a launch has its own: name the folders that it needs", key, p)
			}
		}
	}
}
