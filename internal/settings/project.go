package settings

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"sluice/agents/egress"
	"sluice/agents/program"
	"sluice/engine"
)

// What a project's file may do with a key. The file is in the repo: colleagues and agents write it.
const (
	YoursOnly  = "yours only"
	MayTighten = "may tighten"
	Free       = "free"
)

// Key is a row of the table of what a project's file may set.
type Key struct {
	Name  string // NAME stands for any agent or role; a row covers the keys below it
	Class string // YoursOnly, MayTighten or Free
	Means string // what tighter means, or why the class
	// looser returns how a value exceeds the others' bounds, or the zero value. Only for
	// MayTighten.
	looser func(l layers) excess
}

// layers are the settings without the project's file and with it, for one agent or role.
type layers struct {
	below, with Settings
	name        string
}

// excess is a value that asks for more, or less, than allowed.
type excess struct{ value, how, bound string }

func (x excess) String() string { return x.value + " " + x.how + " " + x.bound }

const (
	asksMore = "asks for more than"
	asksLess = "asks for less than"
	isNot    = "is not"
)

// Keys returns the table: every key of the settings has one row.
func Keys() []Key {
	return slices.Concat(keysOfAgents(), keysOfRoles(), keysOfAll())
}

func keysOfAgents() []Key {
	const own = "for an agent that only the project names: one of yours, or a built-in one, stays as it is"
	return []Key{
		{"agents.NAME.command", MayTighten, own,
			agentChanged(func(a Agent) string { return strings.Join(a.Command, " ") })},
		{"agents.NAME.prompt_via", MayTighten, own, agentChanged(func(a Agent) string { return a.PromptVia })},
		{"agents.NAME.format", MayTighten, own, agentChanged(func(a Agent) string { return a.Format })},
		{"agents.NAME.env", MayTighten,
			"fewer variables; an agent of the project's with the format of a built-in one may have what that one gets",
			agentEnv},
	}
}

func keysOfRoles() []Key {
	return []Key{
		{"roles.NAME.args", MayTighten,
			"for a role that only agents of the project's play: as with their commands, what yours or a built-in one is " +
				"launched with stays as it is", roleArgs},
		{"roles.NAME.env", MayTighten, "fewer variables", func(l layers) excess {
			return wider(l.with.Role(l.name).Env, l.below.Role(l.name).Env)
		}},
		{"roles.NAME.network", MayTighten,
			"`none` is tighter than hosts, hosts than `web`, `web` than `host`; a host of the project's that yours " +
				"does not name " +
				"is reached on ports 80 and 443, where its address is public", func(l layers) excess {
				x, _ := reach(l.with.Role(l.name).Network, l.below.Role(l.name).Network)
				return x
			}},
		{"roles.NAME.max_cost_usd", MayTighten, "less; 0 is that of `budget.attempt`", func(l layers) excess {
			cost := func(s Settings) float64 { return cmp.Or(s.Role(l.name).MaxCostUSD, s.Budget.Attempt.MaxCostUSD) }
			return overBound(cost(l.with), cost(l.below), l.with.Role(l.name).MaxCostUSD)
		}},
		{"roles.NAME.max_tokens", MayTighten, "less; 0 is that of `budget.attempt`", func(l layers) excess {
			tokens := func(s Settings) int64 { return cmp.Or(s.Role(l.name).MaxTokens, s.Budget.Attempt.MaxTokens) }
			return overBound(tokens(l.with), tokens(l.below), l.with.Role(l.name).MaxTokens)
		}},
		{"roles.NAME.on", MayTighten, "more labels, and all of yours; any, where you give the role none",
			func(l layers) excess {
				with, below := l.with.Role(l.name).On, l.below.Role(l.name).On
				if !slices.ContainsFunc(below, func(label string) bool { return !slices.Contains(with, label) }) {
					return excess{}
				}
				return excess{cmp.Or(strings.Join(with, ", "), "none"), asksLess, strings.Join(below, ", ")}
			}},
		{"roles.NAME", Free,
			"who does the work of a role, with which model, prompt and times: the repo's own, as its specs are", nil},
	}
}

func keysOfAll() []Key {
	return []Key{
		{"trust", MayTighten, "`file`, `auto`, `sandbox`, `signed`: each is tighter than the one before",
			func(l layers) excess {
				order := []string{engine.TrustFile, "auto", engine.TrustSandbox, engine.TrustSigned}
				rank := func(s Settings) int { return slices.Index(order, cmp.Or(s.Trust, "auto")) }
				if with := rank(l.with); with < 0 || with >= rank(l.below) { // an unknown level is another fault
					return excess{}
				}
				return excess{l.with.Trust, asksLess, cmp.Or(l.below.Trust, "auto")}
			}},
		{"veto_window", MayTighten, "longer", func(l layers) excess {
			if l.with.VetoWindow >= l.below.VetoWindow {
				return excess{}
			}
			return excess{fmt.Sprint(l.with.VetoWindow), asksLess, fmt.Sprint(l.below.VetoWindow)}
		}},
		{"kill_after", MayTighten, "shorter: what is ended is gone sooner",
			over(func(s Settings) engine.Duration { return s.KillAfter })},
		{"max_agents", MayTighten, "fewer", over(func(s Settings) int64 { return int64(s.MaxAgents) })},
		{"budget.attempt.max_cost_usd", MayTighten, "less",
			over(func(s Settings) float64 { return s.Budget.Attempt.MaxCostUSD })},
		{"budget.attempt.max_tokens", MayTighten, "less",
			over(func(s Settings) int64 { return s.Budget.Attempt.MaxTokens })},
		{"budget.day.max_cost_usd", MayTighten, "less",
			over(func(s Settings) float64 { return s.Budget.Day.MaxCostUSD })},
		{"budget.day.max_tokens", MayTighten, "less", over(func(s Settings) int64 { return s.Budget.Day.MaxTokens })},
		{"budget.day.max_launches", MayTighten, "fewer",
			over(func(s Settings) int64 { return int64(s.Budget.Day.MaxLaunches) })},
		{"budget.day.max_duration", MayTighten, "less",
			over(func(s Settings) engine.Duration { return s.Budget.Day.MaxDuration })},
		{"sandbox", YoursOnly, "what holds the agents, and what of your files they see", nil},
		{"notify", YoursOnly,
			"how you are notified: a repo neither silences notices nor chooses a program that runs at each", nil},
		{"web", YoursOnly, "who reaches the page on which gates are decided", nil},
		{"max_parallel", Free, "`max_agents` bounds all repos", nil},
		{"rescan", Free, "a whole look at the inbox closes each window", nil},
		{"grace", Free, "a spec's steps have times of their own", nil},
		{"linger", Free, "a spec's steps have times of their own", nil},
		{"settle", Free, "when a file of this repo is whole", nil},
		{"pr_poll", Free, "how often this repo's forge is asked", nil},
		{"timeout", Free, "a spec may say its own for each step; `kill_after` and budgets bound it", nil},
		{"idle_timeout", Free, "a spec may say its own for each step", nil},
		{"restarts", Free, "budgets bound it", nil},
	}
}

// KeyOf returns the row of a key, whose parts may contain dots; false if there is no such key.
func KeyOf(parts []string) (Key, bool) { return keyOf(Keys(), parts) }

func keyOf(keys []Key, parts []string) (Key, bool) {
	for _, k := range keys {
		if covers(strings.Split(k.Name, "."), parts) {
			return k, true
		}
	}
	return Key{}, false
}

// Classes returns the documented keys of each class.
func Classes() map[string][]string {
	of, keys := map[string][]string{}, Keys()
	for _, m := range Meanings() {
		k, _ := keyOf(keys, strings.Split(m.Key, "."))
		of[k.Class] = append(of[k.Class], m.Key)
	}
	return of
}

// covers reports whether a row's key is that of parts, or above it.
func covers(row, parts []string) bool {
	return len(row) <= len(parts) &&
		slices.EqualFunc(row, parts[:len(row)], func(w, p string) bool { return w == p || w == "NAME" })
}

// Looser returns how a value of a project's file loosens the other layers, or "". below are the
// settings without the project's file, with those with it.
func Looser(below, with Settings, parts []string) string {
	k, ok := KeyOf(parts)
	if !ok || k.looser == nil {
		return ""
	}
	l := layers{below: below, with: with}
	if len(parts) > 1 {
		l.name = parts[1]
	}
	if x := k.looser(l); x != (excess{}) {
		return x.String()
	}
	return ""
}

// HoldHosts marks hosts that only a project's file names for a role: they are reachable only at
// public addresses.
func (s *Settings) HoldHosts(below Settings) {
	for name, r := range s.Roles {
		_, r.public = reach(r.Network, below.Role(name).Network)
		s.Roles[name] = r
	}
}

// bound is a number for which zero means no limit.
type bound interface{ ~int64 | ~float64 }

func over[T bound](get func(s Settings) T) func(layers) excess {
	return func(l layers) excess { return overBound(get(l.with), get(l.below), get(l.with)) }
}

// overBound compares two limits; shown is the first as written in the file.
func overBound[T bound](with, below, shown T) excess {
	if below == 0 || with != 0 && with <= below {
		return excess{}
	}
	return excess{fmt.Sprint(shown), asksMore, fmt.Sprint(below)}
}

// agentChanged refuses a different value for an agent with a command in the other layers.
func agentChanged(get func(a Agent) string) func(layers) excess {
	return func(l layers) excess {
		before, known := l.below.Agent(l.name)
		after, _ := l.with.Agent(l.name)
		if !known || len(before.Command) == 0 || get(before) == get(after) {
			return excess{}
		}
		return excess{get(after), isNot, get(before)}
	}
}

// roleArgs refuses different arguments for a role played by an agent that the other layers know.
// Those of "*" also apply to each role without its own.
func roleArgs(l layers) excess {
	known := func(name string) bool {
		a, ok := l.below.Agent(name)
		return ok && len(a.Command) > 0
	}
	names := []string{l.name}
	if l.name == AnyRole {
		names = slices.Sorted(maps.Keys(l.with.Roles))
	}
	for _, name := range names {
		role, before := l.with.Role(name), l.below.Role(name).Args
		if !slices.Equal(role.Args, before) && (len(role.Agent) == 0 || slices.ContainsFunc(role.Agent, known)) {
			return excess{argWords(role.Args), isNot, argWords(before)}
		}
	}
	return excess{}
}

func argWords(args []string) string { return cmp.Or(strings.Join(args, " "), "none") }

// agentEnv compares an agent's variables with those below, or with those of the built-in agent of
// its format.
func agentEnv(l layers) excess {
	after, _ := l.with.Agent(l.name)
	before, known := l.below.Agent(l.name)
	if !known {
		before.Env = program.Passed(after.Format)
	}
	return wider(after.Env, before.Env)
}

// wider finds a variable, or a pattern, that none of those below covers.
func wider(with, below []string) excess {
	for _, p := range with {
		covered := slices.ContainsFunc(below, func(b string) bool {
			head, any := strings.CutSuffix(b, "*")
			return p == b || any && strings.HasPrefix(p, head)
		})
		if !covered {
			return excess{p, asksMore, cmp.Or(strings.Join(below, ", "), "no variables")}
		}
	}
	return excess{}
}

// reach compares two networks. public are the hosts covered only by the other one's web.
func reach(with, below []string) (x excess, public []string) {
	if len(with) == 0 {
		with = []string{NetworkWeb}
	}
	if len(below) == 0 {
		below = []string{NetworkWeb}
	}
	for _, h := range with {
		switch {
		case h == NetworkNone || slices.Contains(below, NetworkHost) || slices.Contains(below, h):
		case h != NetworkWeb && h != NetworkHost &&
			slices.ContainsFunc(below, func(b string) bool { return coversHost(b, h) }):
		case h != NetworkWeb && h != NetworkHost && slices.Contains(below, NetworkWeb) && ofWeb(h):
			public = append(public, h)
		default:
			return excess{h, asksMore, strings.Join(below, ", ")}, nil
		}
	}
	return excess{}, public
}

// coversHost reports whether one host rule allows all that another does.
func coversHost(wide, narrow string) bool {
	if slices.Contains([]string{NetworkWeb, NetworkNone, NetworkHost}, wide) {
		return false
	}
	w, wPort, werr := egress.SplitHost(strings.ToLower(wide))
	n, nPort, nerr := egress.SplitHost(strings.ToLower(narrow))
	if werr != nil || nerr != nil || wPort != nPort && (wPort != "" || nPort != "80" && nPort != "443") {
		return false
	}
	tail, any := strings.CutPrefix(w, "*")
	return w == n || any && strings.HasSuffix(n, tail)
}

// ofWeb reports whether a rule's host and port are covered by `web`, unless the address turns out
// to be private.
func ofWeb(rule string) bool {
	host, port, err := egress.SplitHost(rule)
	if err != nil || port != "" && port != "80" && port != "443" || strings.EqualFold(host, "localhost") {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err != nil || egress.Public(ip)
}
