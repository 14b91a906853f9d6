package specs

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"sluice/engine"
	"sluice/internal/ids"
	"sluice/internal/stub"
	"sluice/internal/text"
)

// maxThen bounds how many relaunches a play may describe.
const maxThen = 20

// LoadStubs reads the file of stand-ins for a workflow's agents, and checks that the roles, steps
// and gates it names exist. It returns the script, or all faults, sorted by position.
func LoadStubs(file string, spec *engine.Spec) (*stub.Script, []Fault) {
	src, err := readBounded(file)
	if err != nil {
		return nil, []Fault{{File: file, Line: 1, Col: 1, Message: reason(err)}}
	}
	return ReadStubs(file, src, spec)
}

// ReadStubs is LoadStubs for a text. file is the name in faults.
func ReadStubs(file string, src []byte, spec *engine.Spec) (*stub.Script, []Fault) {
	r := &stubReader{reader: &reader{book{file: file}}, spec: spec, script: &stub.Script{From: file}}
	root := r.parse(src)
	if root == nil {
		return nil, r.sorted()
	}
	r.all(root)
	if len(r.faults) > 0 {
		return nil, r.sorted()
	}
	if b, err := json.Marshal(r.script); err != nil || len(b) > engine.MaxStubs {
		return nil, []Fault{{file, 1, 1, "it takes more than 64 KiB: say less, or in fewer words"}}
	}
	return r.script, nil
}

type stubReader struct {
	*reader
	spec   *engine.Spec
	script *stub.Script
	words  []string // permitted verdicts of the current gate; nil = any
}

func (r *stubReader) all(root *yaml.Node) {
	const what = "the stubs"
	known := []string{"commands", "roles", "steps", "gates"}
	for _, kv := range r.mapping(root, what, strings.Join(known, ", ")) {
		switch kv.name {
		case "commands":
			r.script.Commands = r.word(kv.value, "commands", stub.Pass, stub.Real)
		case "roles":
			r.script.Roles = r.cast(kv.value, "role", append(agentRoles(r.spec), stub.AnyRole), nil)
		case "steps":
			r.script.Steps = r.cast(kv.value, "step", r.ids(stepIDs, false), r.ids(stepIDs, true))
		case "gates":
			r.script.Gates = r.cast(kv.value, "gate", r.ids(gateIDs, false), r.ids(gateIDs, true))
		default:
			r.strange(kv, what, known...)
		}
	}
}

func stepIDs(w *engine.Spec) (ids []string) {
	for _, st := range w.Steps {
		ids = append(ids, st.ID)
	}
	return ids
}

// gateIDs returns the gates whose judge a stand-in can replace.
func gateIDs(w *engine.Spec) (ids []string) {
	for _, g := range w.Gates {
		if g.Reviewer.AgentType != "" || g.Reviewer.Run != nil || len(g.Reviewer.Forge) > 0 {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

// ids returns the ids in the workflow and its child runs, without duplicates, or only those in its
// tasks' runs.
func (r *stubReader) ids(of func(*engine.Spec) []string, ofTasks bool) (ids []string) {
	for _, w := range r.spec.All() {
		if !ofTasks {
			ids = append(ids, of(w)...)
			continue
		}
		for _, st := range w.Steps {
			if st.ForEach != nil && st.Child != nil {
				for _, child := range st.Child.All() {
					ids = append(ids, of(child)...)
				}
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// hasTasks reports whether something is done for each task of a list.
func (r *stubReader) hasTasks() bool { return len(r.ids(stepIDs, true)) > 0 }

// cast reads the plays of one kind. ofTasks are the known names that a key TASK/ID may use.
func (r *stubReader) cast(n *yaml.Node, kind string, known, ofTasks []string) map[string][]stub.Play {
	out := map[string][]stub.Play{}
	for _, kv := range r.mapping(n, kind+"s", kind+": what it does") {
		id, ok := r.played(kv, kind, known, ofTasks)
		if !ok {
			continue
		}
		r.words = nil
		if kind == "gate" {
			r.words = r.verdicts(id)
		}
		out[kv.name] = r.plays(kv.value, kind+" "+kv.name)
	}
	return out
}

// played returns the step or gate that a key names, if a stand-in can replace it; TASK/ID means one
// task's.
func (r *stubReader) played(kv pair, kind string, known, ofTasks []string) (id string, ok bool) {
	task, id, ofTask := strings.Cut(kv.name, "/")
	if !ofTask || kind == "role" || task == "" {
		task, id, ofTask = "", kv.name, false
	}
	switch {
	case ofTask && r.hasTasks() && ids.Fault(task) != "":
		r.at(kv.key, "%ss: task %s %s", kind, quote(task), ids.Fault(task))
	case ofTask && slices.Contains(ofTasks, id), !ofTask && slices.Contains(known, id):
		return id, true
	case ofTask && !r.hasTasks():
		r.at(kv.key, "%ss: workflow %s has no tasks, so %s is of none%s", kind, r.spec.ID, quote(kv.name), r.near(id, known))
	case ofTask && slices.Contains(known, id):
		r.at(kv.key, "%ss: workflow %s does not do %s %s for each task: %s is of none%s", kind, r.spec.ID, kind,
			quote(id), quote(kv.name), r.near(id, known))
	default:
		hint := ""
		if best := text.Nearest(id, ofTasks); ofTask && best != "" {
			hint = fmt.Sprintf(": did you mean %q?", task+"/"+best)
		} else if hint = r.near(kv.name, known); hint == "" && len(known) > 0 {
			hint = ": it has " + strings.Join(known, ", ")
		}
		r.at(kv.key, "%ss: workflow %s has no %s %s for a stub%s", kind, r.spec.ID, kind, quote(kv.name), hint)
	}
	return "", false
}

// verdicts returns the permitted verdicts of the gate of this name; nil = any, if one computes its
// outcome.
func (r *stubReader) verdicts(id string) (out []string) {
	for _, w := range r.spec.All() {
		g := w.Gate(id)
		if g == nil {
			continue
		}
		if len(g.Verdict.Rules) > 0 || g.Verdict.Name != nil {
			return nil
		}
		out = append(out, engine.OutcomePass, engine.OutcomeFail)
		for _, route := range g.Routes {
			if route.Outcome != engine.OutcomeBlocked && route.Outcome != engine.OutcomeLost {
				out = append(out, route.Outcome)
			}
		}
	}
	return out
}

func (r *stubReader) plays(n *yaml.Node, what string) []stub.Play {
	if resolve(n).Kind == yaml.MappingNode {
		return []stub.Play{r.play(n, what)}
	}
	items, ok := r.items(n, what)
	if ok && len(items) == 0 {
		r.at(n, "%s: the list is empty: say what it does, as in [{verdict: fail}, {verdict: pass}]", what)
	}
	var out []stub.Play
	for _, item := range items {
		if resolve(item).Kind != yaml.MappingNode {
			r.at(item, "%s: expected a mapping such as {verdict: pass}, found %s", what, kindOf(resolve(item)))
			continue
		}
		out = append(out, r.play(item, what))
	}
	return out
}

func playKeys() []string {
	return []string{"write", "say", "answer", "verdict", "score", "scores", "feedback", "signal", "summary",
		"question", "takes", "exit", "fail", "reset_in", "then"}
}

func (r *stubReader) play(n *yaml.Node, what string) (p stub.Play) {
	for _, kv := range r.pairs(resolve(n), what) {
		at, where := kv.value, what+": "+kv.name
		switch kv.name {
		case "write":
			p.Write = r.writes(at, where)
		case "say":
			if t := r.scalar(at, where, "a text"); t.set() {
				p.Say = &t.value
			}
		case "answer":
			if v, ok := r.json(at, where); ok {
				p.Answer, _ = json.Marshal(v) // plain JSON values
			}
		case "verdict", "feedback", "summary", "question":
			to := map[string]*string{"verdict": &p.Verdict, "feedback": &p.Feedback, "summary": &p.Summary,
				"question": &p.Question}[kv.name]
			*to = r.scalar(at, where, "a text").value
			if kv.name == "verdict" && p.Verdict != "" && r.words != nil && !slices.Contains(r.words, p.Verdict) {
				r.at(at, "%s: %s is not a verdict here: it has %s", where, quote(p.Verdict), strings.Join(r.words, ", "))
			}
		case "signal":
			p.Signal = r.word(at, where, engine.StatusDone, engine.StatusFailed, engine.StatusBlocked, stub.NoSignal)
		case "fail":
			p.Fail = r.word(at, where, stub.Crash, stub.Silence, stub.Limit)
		case "score":
			p.Score = r.score(at, where)
		case "scores":
			p.Scores = r.scores(at, where)
		case "takes", "reset_in":
			var s spanDoc
			if s.read(r.reader, at, where); s.texpr != "" {
				r.at(at, "%s: expressions have no place here", where)
			}
			if kv.name == "takes" {
				p.Takes = engine.Duration(s.d)
			} else {
				p.ResetIn = engine.Duration(s.d)
			}
		case "exit":
			p.Exit = r.code(at, where)
		case "then":
			if p.Then = r.plays(at, where); len(p.Then) > maxThen {
				r.at(at, "%s: more than %d", where, maxThen)
			}
		default:
			r.strange(kv, what, playKeys()...)
		}
	}
	return p
}

func (r *stubReader) word(n *yaml.Node, what string, known ...string) string {
	t := r.scalar(n, what, "one of "+strings.Join(known, ", "))
	if t.set() && !slices.Contains(known, t.value) {
		r.at(n, "%s: unknown word %s%s", what, quote(t.value), r.oneOf(t.value, known))
	}
	return t.value
}

// score reads a number from 0 to 100.
func (r *stubReader) score(n *yaml.Node, what string) *float64 {
	var c number
	switch c.read(r.reader, n, what); {
	case c.node == nil:
		return nil
	case c.texpr != "":
		r.at(n, "%s: expressions have no place here", what)
	case c.f > 100:
		r.at(n, "%s: %g is more than 100", what, c.f)
	}
	return &c.f
}

func (r *stubReader) scores(n *yaml.Node, what string) map[string]float64 {
	out := map[string]float64{}
	for _, kv := range r.mapping(n, what, "what is scored: 0 to 100") {
		if f := r.score(kv.value, what+": "+kv.name); f != nil {
			out[kv.name] = *f
		}
	}
	return out
}

func (r *stubReader) code(n *yaml.Node, what string) int {
	var c number
	if c.read(r.reader, n, what); c.node != nil && (c.f > 255 || c.f != math.Trunc(c.f) || c.texpr != "") {
		r.at(n, "%s: want an exit code, 0 to 255", what)
		return 0
	}
	return int(c.f)
}

// writes reads the files that a stand-in writes; null omits a file that the spec requires.
func (r *stubReader) writes(n *yaml.Node, what string) map[string]*string {
	out := map[string]*string{}
	for _, kv := range r.mapping(n, what, "file: its text") {
		if !filepath.IsLocal(filepath.FromSlash(kv.name)) || path.Clean(kv.name) == "." {
			r.at(kv.key, "%s: %s leads out of the repo: name a file below the step's folder", what, quote(kv.name))
			continue
		}
		if isNull(resolve(kv.value)) {
			out[kv.name] = nil
			continue
		}
		if t := r.scalar(kv.value, what+": "+kv.name, "the file's text, or null"); t.set() {
			out[kv.name] = &t.value
		}
	}
	return out
}
