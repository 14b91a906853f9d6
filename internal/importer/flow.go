package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/internal/ids"
)

// flow is a workflow between the original's format and a spec of ours.
type flow struct {
	id, name, description string
	notes                 []string // comments at the head of the file
	vars                  []variable
	workspace             string // "" = checkout
	limits                []entry
	protect               []string
	steps                 []*step
	gates                 []*gate
	stubs                 []stubbed // what stand-ins answer, so that a trial goes forward
	gives                 string    // an expression for its answer, read in it by one that runs it; "" = none
}

// entry is a key and its value, both as they stand in the spec.
type entry struct{ key, value string }

type variable struct {
	name, description string
	value             *yaml.Node // the default; nil = a run is given one
}

type step struct {
	id, name   string
	notes      []string
	role       string
	prompt     string
	context    []string
	session    string
	reads      bool
	shell      string // a command for sh -c
	argv       []string
	env        []entry
	workflow   string
	vars       []entry
	tasks      entry      // a list's file, and the expression that it is made of
	gives      string     // an expression: the child's answer
	answer     *yaml.Node // a schema
	outputs    []entry    // path, and expression
	criteria   []string
	timeout    string
	idle       string
	restarts   int
	gate       *gate // the first of those that its work passes
	next       []string
	onFail     string
	needs      []string
	wantsNeeds bool // also if there are none
	when       string
}

type gate struct {
	id          string
	notes       []string
	level       string
	agent       string
	run         string // a command for sh -c
	fromStep    bool
	prompt      string
	answer      *yaml.Node
	verdict     []entry
	pass        []string
	passGate    string
	onFail      string
	routes      []entry
	maxFailures int
	onExhausted string
}

// stubbed is what a stand-in of a step answers.
type stubbed struct {
	step   string
	answer *yaml.Node
}

func (f *flow) step(id string) *step {
	for _, s := range f.steps {
		if s.id == id {
			return s
		}
	}
	return nil
}

// judge makes g the gate of s.
func (f *flow) judge(s *step, g *gate) {
	s.gate = g
	f.gates = append(f.gates, g)
}

// plays says what a stand-in of s answers: the given values, and the least that the schema takes.
func (f *flow) plays(s *step, given map[string]string) {
	f.stubs = append(f.stubs, stubbed{s.id, leastAnswer(s.answer, given)})
}

// ask makes a gate of s at which a person is asked. A pass goes on as s does.
func (f *flow) ask(s *step, prompt string) *gate {
	g := &gate{id: s.id + "-gate", level: "human", prompt: prompt, pass: s.next, onFail: "ABORTED"}
	if len(s.next) == 0 {
		g.pass = []string{"DONE"}
	}
	f.judge(s, g)
	return g
}

// byHand asks a person to do what is not imported.
func (f *flow) byHand(s *step, why string) { f.ask(s, literal(why)) }

// route adds a way out of the gate; the first of a name holds.
func (g *gate) route(name, to string) (added bool) {
	if slices.ContainsFunc(g.routes, func(e entry) bool { return strings.EqualFold(e.key, name) }) {
		return false
	}
	g.routes = append(g.routes, entry{name, to})
	return true
}

// routeTo names the way to a place of the original.
func routeTo(name string) string { return "to-" + slug(strings.TrimPrefix(name, "$"), 50) }

// namer gives out ids that are ours and used once, ignoring case.
type namer map[string]bool

// id returns an id made of the words.
func (n namer) id(words string) string {
	base := slug(words, ids.Max-4)
	for i := 1; ; i++ {
		id := base
		if i > 1 {
			id = fmt.Sprintf("%s-%d", base, i)
		}
		if low := strings.ToLower(id); !n[low] {
			n[low] = true
			return id
		}
	}
}

// slug makes an id of words: at most most characters, letters, digits, - and _ only. A word that no step, gate or
// route may have as its name gets a number.
func slug(words string, most int) string {
	out := regexp.MustCompile(`[^A-Za-z0-9_]+`).ReplaceAllString(words, "-")
	out = strings.TrimLeft(out, "-_")
	out = strings.TrimRight(out[:min(len(out), most)], "-_")
	reserved := regexp.MustCompile(`(?i)^(?:done|failed|aborted|human|pass|fail|veto|blocked|lost|` +
		`con|prn|aux|nul|com[0-9]|lpt[0-9])$`)
	switch {
	case out == "":
		return "x"
	case reserved.MatchString(out):
		return out + "-1"
	}
	return out
}

// roleOf names a role after the provider and the model that play it in the original.
func roleOf(provider, model string) string {
	if provider+model == "" {
		return "worker"
	}
	return slug(provider+"-"+model, 40)
}

// varName makes a var's name of words.
func varName(words string) string {
	out := strings.ReplaceAll(slug(words, 40), "-", "_")
	if out[0] >= '0' && out[0] <= '9' {
		return "v_" + out
	}
	return out
}

// addVar declares a var once, and returns the expression that reads it; the first declaration holds.
func (f *flow) addVar(v variable) (expr string) {
	if !slices.ContainsFunc(f.vars, func(o variable) bool { return strings.EqualFold(o.name, v.name) }) {
		f.vars = append(f.vars, v)
	}
	return "vars." + v.name
}

// conjunction translates conditions that are joined by && and ||. of translates the match of one, with the white
// space around it.
func conjunction(s string, one *regexp.Regexp, of func(m []string) (expr string, ok bool)) (expr string, ok bool) {
	var out []string
	for {
		m := one.FindStringSubmatch(s)
		if m == nil {
			return "", false
		}
		e, ok := of(m)
		if !ok {
			return "", false
		}
		out = append(out, e)
		switch s = s[len(m[0]):]; {
		case s == "":
			return strings.Join(out, " "), true
		case strings.HasPrefix(s, "&&"):
			out = append(out, "and")
		case strings.HasPrefix(s, "||"):
			out = append(out, "or")
		default:
			return "", false
		}
		s = s[2:]
	}
}

// literal makes words of another tool fit for a text of ours, in which ${{ }} is an expression.
func literal(s string) string { return strings.ReplaceAll(s, "${{", `${{"${{"}}`) }

// embed makes an expression part of a text.
func embed(e string) string { return "${{" + e + "}}" }

// answerOf is an expression that reads a step's answer, or a value in it; a missing one is nil.
func answerOf(id string, path ...string) string {
	return strings.Join(append([]string{fmt.Sprintf("steps[%q]?.answer", id)}, path...), "?.")
}

// printed is an expression that reads what a step's command printed, or a value of that as JSON.
func printed(id string, path []string) string {
	if len(path) == 0 {
		return fmt.Sprintf("trim(steps[%q]?.stdout ?? \"\")", id)
	}
	return fmt.Sprintf("fromJSON(steps[%q]?.stdout ?? \"{}\")?.%s", id, strings.Join(path, "?."))
}

// duration writes seconds as ours are written.
func duration(seconds float64) string {
	s := int64(seconds)
	switch {
	case s < 1:
		return "1s"
	case s%3600 == 0:
		return fmt.Sprintf("%dh", s/3600)
	case s%60 == 0:
		return fmt.Sprintf("%dm", s/60)
	}
	return fmt.Sprintf("%ds", s)
}
