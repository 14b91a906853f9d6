// Package settings has the keys of config.yaml: their meaning (settings.go), their checks
// (check.go), and what a project may set (project.go). Read merges the layers (layers.go, read.go):
// the built-in values, the person's file, the project's, the environment, --set. Files reports when
// the files have changed and are complete (watch.go).
package settings

import (
	"cmp"
	"maps"
	"net"
	"slices"
	"time"

	"sluice/agents/program"
	"sluice/engine"
	"sluice/notify"
)

// Ways to pass a prompt to an agent.
const (
	ViaStdin = "stdin" // on standard input
	ViaArg   = "arg"   // as the last argument
	ViaFile  = "file"  // as a file's path: in place of ${{prompt_file}}, else as the last argument
)

// FormatText means that an agent's output is text and its exit code the result. The other formats
// are those of package program.
const FormatText = "text"

// AnyRole is the entry under `roles` for every role without its own.
const AnyRole = engine.AnyRole

// Settings are the keys of config.yaml, merged from all layers.
type Settings struct {
	Agents      map[string]Agent `koanf:"agents" json:"agents"`
	Roles       map[string]Role  `koanf:"roles" json:"roles"`
	MaxParallel int              `koanf:"max_parallel" json:"max_parallel"` // concurrent steps and reviews of a repo
	MaxAgents   int              `koanf:"max_agents" json:"max_agents"`     // over all repos of the daemon
	Trust       string           `koanf:"trust" json:"trust"`               // auto, file, sandbox or signed
	VetoWindow  engine.Duration  `koanf:"veto_window" json:"veto_window"`
	Notify      Notify           `koanf:"notify" json:"notify"`
	Rescan      engine.Duration  `koanf:"rescan" json:"rescan"`
	Grace       engine.Duration  `koanf:"grace" json:"grace"`
	Linger      engine.Duration  `koanf:"linger" json:"linger"`
	Settle      engine.Duration  `koanf:"settle" json:"settle"`
	KillAfter   engine.Duration  `koanf:"kill_after" json:"kill_after"`
	PRPoll      engine.Duration  `koanf:"pr_poll" json:"pr_poll"`
	Timeout     engine.Duration  `koanf:"timeout" json:"timeout"`
	IdleTimeout engine.Duration  `koanf:"idle_timeout" json:"idle_timeout"` // 0 = none
	Restarts    int              `koanf:"restarts" json:"restarts"`
	Budget      Budget           `koanf:"budget" json:"budget"`
	Sandbox     Sandbox          `koanf:"sandbox" json:"sandbox"`
	Web         Web              `koanf:"web" json:"web"`
}

// Web is where the daemon's page is.
type Web struct {
	Listen string `koanf:"listen" json:"listen"` // host:port; "" = on this machine, when `sluice web` asks
	Name   string `koanf:"name" json:"name"`     // its domain name, for other devices
	Cert   string `koanf:"cert" json:"cert"`     // the certificate of that name, a file in PEM
	Key    string `koanf:"key" json:"key"`       // its private key

	// Label is this machine's own part of the local name; "" = there is none yet.
	Label string `koanf:"-" json:"-"`
}

// LocalName ends the page's name on its own machine. Browsers send the cookies of a host to all its
// ports: at a name that an agent knows, a server of its own would receive the login. So each machine
// has a random label before it.
const LocalName = "sluice.localhost"

// DefaultListen is where the page listens unless the settings name another address.
const DefaultListen = "127.0.0.1:7467"

// Port returns the port that the page listens on; "" if the setting names none.
func (w Web) Port() string {
	_, port, _ := net.SplitHostPort(cmp.Or(w.Listen, DefaultListen)) // the check of settings reports it
	return port
}

// At returns the page's address when it listens on a port.
func (w Web) At(port string) string {
	switch {
	case w.Name == "":
		return "http://" + w.Label + "." + LocalName + ":" + port
	case port == "443":
		return "https://" + w.Name
	}
	return "https://" + w.Name + ":" + port
}

// Pages returns the address of the pages of a repo's runs, by the repo's id; "" if the page listens
// only when `sluice web` asks.
func (w Web) Pages(repo string) string {
	_, port, err := net.SplitHostPort(w.Listen)
	if err != nil || port == "0" || w.Name == "" && w.Label == "" {
		return ""
	}
	return w.At(port) + "/r/" + repo
}

// Sandbox configures the sandbox of launches.
type Sandbox struct {
	Mode string `koanf:"mode" json:"mode"` // auto, on, off
	// what a launch sees of the home and of other hidden folders: "~/…" or absolute
	Read  []string `koanf:"read" json:"read"`
	Write []string `koanf:"write" json:"write"` // what it may also write to

	// total of the private folders of a run's launches; 0 = no limit
	MaxHomeGB float64 `koanf:"max_home_gb" json:"max_home_gb"`
}

// Agent is how an agent is launched.
type Agent struct {
	Command   []string `koanf:"command" json:"command"` // with ${{role}}, ${{model}} and ${{prompt_file}}
	PromptVia string   `koanf:"prompt_via" json:"prompt_via"`
	Format    string   `koanf:"format" json:"format"`
	Env       []string `koanf:"env" json:"env"` // names and patterns (MY_*) of the daemon's variables that it gets
}

// Role is who does the work of a role, and how.
type Role struct {
	Agent []string `koanf:"agent" json:"agent"` // names under `agents`; several take turns
	Model string   `koanf:"model" json:"model"`
	// appended to the command of whichever agent plays it
	Args        []string        `koanf:"args" json:"args"`
	PromptFile  string          `koanf:"prompt_file" json:"prompt_file"` // below .workflow/, else below the root
	Timeout     engine.Duration `koanf:"timeout" json:"timeout"`
	IdleTimeout engine.Duration `koanf:"idle_timeout" json:"idle_timeout"`
	Restarts    *int            `koanf:"restarts" json:"restarts"`
	// of one attempt, or of one round's reviewer; 0 = budget.attempt
	MaxCostUSD float64  `koanf:"max_cost_usd" json:"max_cost_usd"`
	MaxTokens  int64    `koanf:"max_tokens" json:"max_tokens"` // likewise
	Env        []string `koanf:"env" json:"env"`
	Network    []string `koanf:"network" json:"network"` // web, none, host, or names of hosts; web if absent
	On         []string `koanf:"on" json:"on"`           // labels of the workers that do its steps; none = this machine

	public []string // of Network: reachable only at public addresses
}

// Notify is how a person is notified.
type Notify struct {
	Desktop bool `koanf:"desktop" json:"desktop"`
	// opens a terminal that runs what follows; empty: a known one
	Terminal []string        `koanf:"terminal" json:"terminal"`
	Command  []string        `koanf:"command" json:"command"`
	Webhook  Webhook         `koanf:"webhook" json:"webhook"`
	Remind   engine.Duration `koanf:"remind" json:"remind"` // 0 = no reminders
	Escalate Escalate        `koanf:"escalate" json:"escalate"`
}

// Webhook is how a webhook is called: see notify.Hook.
type Webhook struct {
	URL       string            `koanf:"url" json:"url"` // "" = none
	Method    string            `koanf:"method" json:"method"`
	SecretEnv string            `koanf:"secret_env" json:"secret_env"`
	Headers   map[string]string `koanf:"headers" json:"headers"`
	Body      string            `koanf:"body" json:"body"`
}

// Hook returns the webhook as the notifier takes it.
func (w Webhook) Hook() notify.Hook {
	return notify.Hook{URL: w.URL, Method: w.Method, SecretEnv: w.SecretEnv, Headers: w.Headers, Body: w.Body}
}

// Escalate reserves channels for a gate that nobody answers.
type Escalate struct {
	After int      `koanf:"after" json:"after"` // reminders of a gate; 0 = never
	To    []string `koanf:"to" json:"to"`       // channels: desktop, command, webhook
}

// Budget limits spending.
type Budget struct {
	Attempt Amount `koanf:"attempt" json:"attempt"` // of any role without its own
	// over all repos of the daemon, from 00:00 to 00:00 in its time zone
	Day Day `koanf:"day" json:"day"`
}

// Amount is what may be spent; zero = no limit.
type Amount struct {
	MaxCostUSD float64 `koanf:"max_cost_usd" json:"max_cost_usd"`
	MaxTokens  int64   `koanf:"max_tokens" json:"max_tokens"`
}

// Day is what all repos of a daemon may use in a day; zero = no limit.
type Day struct {
	MaxCostUSD  float64 `koanf:"max_cost_usd" json:"max_cost_usd"`
	MaxTokens   int64   `koanf:"max_tokens" json:"max_tokens"`
	MaxLaunches int     `koanf:"max_launches" json:"max_launches"` // of agents
	// total running time of agents, concurrent ones added
	MaxDuration engine.Duration `koanf:"max_duration" json:"max_duration"`
}

func (d Day) Spend() engine.Spend {
	return engine.Spend{Usage: engine.Usage{Tokens: d.MaxTokens, CostUSD: d.MaxCostUSD},
		Launches: d.MaxLaunches, Time: d.MaxDuration}
}

func (a Amount) usage() engine.Usage { return engine.Usage{Tokens: a.MaxTokens, CostUSD: a.MaxCostUSD} }

// Default returns the built-in settings.
func Default() Settings {
	c := engine.DefaultConfig()
	return Settings{
		Agents:      builtin(),
		Roles:       map[string]Role{AnyRole: {Agent: []string{"claude"}}},
		MaxParallel: c.MaxParallel,
		MaxAgents:   8,
		Trust:       "auto",
		VetoWindow:  c.VetoWindow,
		Notify:      Notify{Desktop: true, Remind: c.Remind},
		Rescan:      engine.Duration(5 * time.Second),
		Grace:       c.Grace,
		Linger:      c.Linger,
		Settle:      engine.Duration(2 * time.Second),
		KillAfter:   engine.Duration(10 * time.Second),
		PRPoll:      c.PRPoll,
		Timeout:     c.Timeout,
		Restarts:    c.Restarts,
		Sandbox:     Sandbox{Mode: SandboxAuto, MaxHomeGB: 10},
	}
}

// builtin returns the agents that settings need not name.
func builtin() map[string]Agent {
	out := map[string]Agent{}
	for _, name := range program.Names() {
		out[name] = Agent{Command: []string{name}, PromptVia: ViaStdin, Format: name, Env: program.Passed(name)}
	}
	return out
}

// Engine returns the engine's settings. `trust: auto` requires nothing: each answer's trust level
// is reported, and a recorded requirement is never lowered.
func (s Settings) Engine() engine.Config {
	c := engine.Config{
		MaxParallel: s.MaxParallel, Grace: s.Grace, Linger: s.Linger, PRPoll: s.PRPoll, VetoWindow: s.VetoWindow,
		Timeout: s.Timeout, Remind: s.Notify.Remind, Restarts: s.Restarts, Trust: s.Trust,
		Roles:   map[string]engine.RoleLimits{},
		Attempt: s.Budget.Attempt.usage(), Day: s.Budget.Day.Spend(),
	}
	if c.Trust == "auto" || c.Trust == "" {
		c.Trust = engine.TrustFile
	}
	for _, name := range slices.Sorted(maps.Keys(s.Roles)) {
		r := s.Roles[name]
		own := engine.RoleLimits{Usage: engine.Usage{Tokens: r.MaxTokens, CostUSD: r.MaxCostUSD},
			Timeout: r.Timeout, IdleTimeout: r.IdleTimeout, Restarts: r.Restarts}
		if any := s.Roles[AnyRole]; own != (engine.RoleLimits{}) || any.Timeout != 0 || any.Restarts != nil ||
			any.MaxTokens != 0 || any.MaxCostUSD != 0 {
			c.Roles[name] = own // even if empty: the role is named, so "*" must not apply
		}
	}
	return c
}

// Inherit gives a named role the values of "*" for agent, args, on, network and costs that it does not
// set itself, so naming a role loosens nothing. said reports whether a layer has a key.
func (s Settings) Inherit(said func(role, key string) bool) {
	any := s.Roles[AnyRole]
	for name, r := range s.Roles {
		if !said(name, "agent") {
			r.Agent = any.Agent
		}
		if !said(name, "args") {
			r.Args = any.Args
		}
		if !said(name, "on") {
			r.On = any.On
		}
		if !said(name, "network") {
			r.Network = any.Network
		}
		if !said(name, "max_cost_usd") {
			r.MaxCostUSD = any.MaxCostUSD
		}
		if !said(name, "max_tokens") {
			r.MaxTokens = any.MaxTokens
		}
		s.Roles[name] = r
	}
}

// Role returns the settings of a role: its own, else those of "*".
func (s Settings) Role(name string) Role {
	if r, ok := s.Roles[name]; ok {
		return r
	}
	return s.Roles[AnyRole]
}

// Agent returns the agent with the name, with defaults filled in.
func (s Settings) Agent(name string) (Agent, bool) {
	a, ok := s.Agents[name]
	if !ok {
		a, ok = builtin()[name]
	}
	a.PromptVia = cmp.Or(a.PromptVia, ViaStdin)
	a.Format = cmp.Or(a.Format, FormatText)
	return a, ok
}
