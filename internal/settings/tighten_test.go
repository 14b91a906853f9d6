package settings

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice/tools/conform"
)

// TestAProjectsFileOnlyTightens: a value of the project's file that is looser than the person's
// layers is refused with its place; one that is equal or tighter is accepted.
func TestAProjectsFileOnlyTightens(t *testing.T) {
	conform.Rule(t, "13-law args trust", "\"`roles.NAME.args`\" say with what bounds an agent works, as its command does: a project's file gives them only to roles that its own agents alone play")
	for _, c := range []struct{ name, own, project, says string }{
		{"trust lowered", "trust: sandbox\n", "trust: file\n", "config.yaml:1: trust: file asks for less than sandbox (config.yaml:1): a project's file can only tighten: "},
		{"trust off", "trust: signed\n", "trust: auto\n", "trust: auto asks for less than signed"},
		{"trust below the built-in one", "", "trust: file\n", "trust: file asks for less than auto (built-in)"},
		{"trust raised", "trust: sandbox\n", "trust: signed\n", ""},
		{"the machine's network", "", "roles: {a: {network: host}}\n", "roles.a.network: host asks for more than web (built-in)"},
		{"the machine's network for all", "", "roles: {\"*\": {network: host}}\n", "roles.*.network: host asks for more than web"},
		{"the network again", "roles: {a: {network: none}}\n", "roles: {a: {network: web}}\n", "roles.a.network: web asks for more than none (config.yaml:1)"},
		{"the network of a role that only the project names", "roles: {\"*\": {network: none}}\n", "roles: {a: {network: web}}\n", "roles.a.network: web asks for more than none"},
		{"another host", "roles: {a: {network: [x.org, \"*.y.org\"]}}\n", "roles: {a: {network: [z.org]}}\n", "roles.a.network: z.org asks for more than x.org, *.y.org"},
		{"a host's other port", "roles: {a: {network: [x.org]}}\n", "roles: {a: {network: [\"x.org:22\"]}}\n", "x.org:22 asks for more"},
		{"a port of the web's hosts", "", "roles: {a: {network: [\"x.org:22\"]}}\n", "x.org:22 asks for more than web"},
		{"this machine", "", "roles: {a: {network: [\"127.0.0.1:80\"]}}\n", "127.0.0.1:80 asks for more than web"},
		{"this machine by its name", "", "roles: {a: {network: [localhost]}}\n", "localhost asks for more than web"},
		{"fewer hosts", "roles: {a: {network: [x.org, \"*.y.org\"]}}\n", "roles: {a: {network: [a.y.org, \"*.b.y.org\", \"x.org:443\"]}}\n", ""},
		{"hosts of the web", "", "roles: {a: {network: [api.openai.com]}}\n", ""},
		{"no network", "", "roles: {a: {network: none}}\n", ""},
		{"as much as yours", "roles: {a: {network: host}}\n", "roles: {a: {network: host}}\n", ""},
		{"a role's variables", "", "roles: {a: {env: [AWS_SECRET_ACCESS_KEY]}}\n", "roles.a.env: AWS_SECRET_ACCESS_KEY asks for more than no variables"},
		{"more variables", "roles: {a: {env: [MY_*]}}\n", "roles: {a: {env: [MY_A, YOUR_A]}}\n", "roles.a.env: YOUR_A asks for more than MY_*"},
		{"a wider pattern", "roles: {a: {env: [MY_*]}}\n", "roles: {a: {env: [M*]}}\n", "roles.a.env: M* asks for more"},
		{"fewer variables", "roles: {a: {env: [MY_*]}}\n", "roles: {a: {env: [MY_A]}}\n", ""},
		{"arguments for a built-in agent", "", "roles: {a: {args: [--x]}}\n", "roles.a.args: --x is not none (built-in)"},
		{"arguments for all", "", "roles: {\"*\": {args: [--x]}}\n", "roles.*.args: --x is not none"},
		{"no more arguments", "roles: {a: {args: [--permission-mode, plan]}}\n", "roles: {a: {args: []}}\n", "roles.a.args: none is not --permission-mode plan (config.yaml:1)"},
		{"arguments by a role that only the project names", "roles: {\"*\": {args: [--permission-mode, plan]}}\n", "roles: {a: {args: [--x]}}\n", "roles.a.args: --x is not --permission-mode plan"},
		{"arguments for the other of two", "", "agents: {m: {command: [./m]}}\nroles: {a: {agent: [m, claude], args: [--x]}}\n", "roles.a.args: --x is not none"},
		{"arguments by way of all roles", "", "agents: {m: {command: [./m]}}\nroles: {\"*\": {agent: m, args: [--x]}, a: {agent: claude}}\n", "roles.*.args: --x is not none"},
		{"arguments for the project's agents", "", "agents: {m: {command: [./m]}}\nroles: {a: {agent: m, args: [--x]}}\n", ""},
		{"another agent with your arguments", "roles: {a: {args: [--x]}}\n", "agents: {m: {command: [./m]}}\nroles: {a: {agent: m, args: []}}\n", ""},
		{"another worker", "roles: {a: {on: [lab]}}\n", "roles: {a: {on: [gpu]}}\n", "roles.a.on: gpu asks for less than lab (config.yaml:1)"},
		{"no worker", "roles: {a: {on: [lab]}}\n", "roles: {a: {on: []}}\n", "roles.a.on: none asks for less than lab"},
		{"another worker by a role that only the project names", "roles: {\"*\": {on: [lab]}}\n", "roles: {a: {on: [gpu]}}\n", "roles.a.on: gpu asks for less than lab"},
		{"one of your workers", "roles: {a: {on: [lab]}}\n", "roles: {a: {on: [gpu, lab]}}\n", ""},
		{"a first worker", "", "roles: {a: {on: [gpu]}}\n", ""},
		{"an agent's variables", "", "agents: {a: {command: [x], env: [GH_TOKEN]}}\n", "agents.a.env: GH_TOKEN asks for more than no variables"},
		{"a claude of the project's", "", "agents: {a: {command: [claude, --x], format: claude, env: [\"ANTHROPIC_*\"]}}\n", ""},
		{"a built-in agent's command", "", "agents: {claude: {command: [./mine]}}\n", "agents.claude.command: ./mine is not claude"},
		{"your agent's command", "agents: {a: {command: [x], env: [KEY]}}\n", "agents: {a: {command: [y]}}\n", "agents.a.command: y is not x (config.yaml:1)"},
		{"your agent's format", "agents: {a: {command: [x]}}\n", "agents: {a: {format: claude}}\n", "agents.a.format: claude is not text"},
		{"an agent's program, for the variables that you pass", "agents: {a: {env: [KEY]}}\n", "agents: {a: {command: [y]}}\n", ""},
		{"a longer window", "", "veto_window: 31s\n", ""},
		{"a shorter window", "", "veto_window: 29s\n", "veto_window: 29s asks for less than 30s (built-in)"},
		{"no window", "veto_window: 1m\n", "veto_window: 0s\n", "veto_window: 0s asks for less than 1m"},
		{"a kill that is late", "", "kill_after: 11s\n", "kill_after: 11s asks for more than 10s"},
		{"a kill that is early", "", "kill_after: 1s\n", ""},
		{"a larger budget", "budget: {day: {max_cost_usd: 5}}\n", "budget: {day: {max_cost_usd: 6}}\n", "budget.day.max_cost_usd: 6 asks for more than 5"},
		{"no budget", "budget: {day: {max_launches: 5}}\n", "budget: {day: {max_launches: 0}}\n", "budget.day.max_launches: 0 asks for more than 5"},
		{"a smaller budget", "budget: {day: {max_duration: 5h}}\n", "budget: {day: {max_duration: 4h}}\n", ""},
		{"a first budget", "", "budget: {day: {max_tokens: 4}, attempt: {max_cost_usd: 1}}\n", ""},
		{"a role beyond the attempt's budget", "budget: {attempt: {max_tokens: 5}}\n", "roles: {a: {max_tokens: 6}}\n", "roles.a.max_tokens: 6 asks for more than 5"},
		{"a role back to none", "roles: {a: {max_cost_usd: 2}}\n", "roles: {a: {max_cost_usd: 0}}\n", "roles.a.max_cost_usd: 0 asks for more than 2"},
		{"a role of the project's beyond that of all", "roles: {\"*\": {max_cost_usd: 2}}\n", "roles: {a: {max_cost_usd: 3}}\n", "roles.a.max_cost_usd: 3 asks for more than 2"},
		{"more agents", "", "max_agents: 9\n", "max_agents: 9 asks for more than 8 (built-in)"},
		{"the sandbox", "", "sandbox: {mode: off}\n", "sandbox.mode is yours alone to set"},
		{"what is shown", "", "sandbox: {read: [~/.ssh]}\n", "sandbox.read is yours alone to set"},
		{"no notices", "", "notify: {desktop: false}\n", "notify.desktop is yours alone to set"},
		{"no reminders", "", "notify: {remind: 0s}\n", "notify.remind is yours alone to set"},
		{"what is free", "", "max_parallel: 9\ntimeout: 9h\nroles: {a: {agent: codex, model: x, prompt_file: p.md, restarts: 3, timeout: 5h, idle_timeout: 0s}}\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, EnvPrefix) })
			w.own(c.own)
			w.write(".workflow/config.yaml", c.project)
			_, err := w.read()
			switch {
			case c.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case c.says != "" && (err == nil || !strings.Contains(regexp.MustCompile(`\(/\S+/`).ReplaceAllString(err.Error(), "("), c.says)):
				t.Errorf("%v; want %q", err, c.says)
			}
		})
	}
}

// TestNamingARoleLoosensNothing: a role named in a file keeps the network and budget of "*", unless
// the file sets its own.
func TestNamingARoleLoosensNothing(t *testing.T) {
	w := newWorld(t)
	w.own("roles: {\"*\": {network: none, max_cost_usd: 2, max_tokens: 7, env: [SECRET]}}\n")
	w.write(".workflow/config.yaml", "roles: {a: {agent: codex}}\n")
	s, err := w.read("roles.b.model=x")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		r := s.Roles[name]
		if len(r.Network) != 1 || r.Network[0] != NetworkNone || r.MaxCostUSD != 2 || r.MaxTokens != 7 || len(r.Env) != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestWhatIsSetOverTheProject: a value that a later layer of the person replaces loosens nothing.
func TestWhatIsSetOverTheProject(t *testing.T) {
	w := newWorld(t)
	w.own("veto_window: 1m\n")
	w.write(".workflow/config.yaml", "veto_window: 2s\n")
	if _, err := w.read("veto_window=2s"); err != nil {
		t.Error(err)
	}
	if _, err := w.read(); err == nil {
		t.Error("taken without --set")
	}
}
