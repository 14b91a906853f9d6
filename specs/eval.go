package specs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm"

	"sluice/engine"
)

// Limits of one evaluation. Steps are all loop turns in all, any, map and the like; a long value
// counts by its length.
const (
	maxExprSteps  = 100_000
	maxExprMemory = 1_000_000 // elements created
	maxExprTime   = time.Second
	maxValueBytes = 1 << 20 // of a text that an expression returns or builds
)

var (
	errSteps  = errors.New("the expression took too many steps: at most 100,000 turns of its loops")
	errTime   = errors.New("the expression took longer than a second")
	errTooBig = errors.New("the expression made a value of more than 1 MiB")
	errNotYet = errors.New("what it reads is not there yet")
)

// guarded is our replacement for a builtin that could grow a value without limit.
type guarded func(args ...any) (any, error)

// Names that no spec can use, because the checker does not know them; the patcher inserts them.
const (
	tickName  = "__tick"  // one loop turn
	addName   = "__add"   // +, limited
	byName    = "__by"    // what a number is divided by
	tallyName = "__tasks" // the counts of `tasks`
)

func guardedNames() []string { return []string{"join", "replace", "repeat", "string", "toJSON"} }

// patcher makes an expression total: it counts each loop turn and each +. In a text, a missing
// value is nil through the whole chain.
type patcher struct{ text bool }

// Visit is called after the children.
func (p *patcher) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.PredicateNode:
		n.Node = called(tickName, n.Node)
	case *ast.BinaryNode:
		switch n.Operator {
		case "+":
			ast.Patch(node, called(addName, n.Left, n.Right))
		case "/":
			n.Right = called(byName, n.Right)
		}
	case *ast.MemberNode:
		if root, ok := n.Node.(*ast.IdentifierNode); ok && root.Value == "tasks" {
			if name, ok := n.Property.(*ast.StringNode); ok &&
				strings.Contains(" total done failed blocked ", " "+name.Value+" ") {
				root.Value = tallyName
			}
		}
		if p.text && !n.Optional {
			n.Optional = true
			ast.Patch(node, &ast.ChainNode{Node: n})
		}
	}
}

func called(name string, args ...ast.Node) ast.Node {
	return &ast.CallNode{Callee: &ast.IdentifierNode{Value: name}, Arguments: args}
}

type evaluation struct {
	steps int
	until time.Time
}

func (e *evaluation) charge(n int) error {
	if e.steps += n; e.steps > maxExprSteps {
		return errSteps
	}
	if time.Now().After(e.until) {
		return errTime
	}
	return nil
}

func (e *evaluation) tick(args ...any) (any, error) { return args[0], e.charge(1) }

// by refuses 0: x / 0 is above each number, and 0 / 0 is neither above nor below one.
func (e *evaluation) by(args ...any) (any, error) {
	if n, ok := toFloat(args[0]); ok && n == 0 {
		return nil, errors.New("a division by 0")
	}
	return args[0], nil
}

// add is + for numbers and texts.
func (e *evaluation) add(args ...any) (any, error) {
	if x, ok := args[0].(string); ok {
		if y, ok := args[1].(string); ok {
			return e.grown(len(x)+len(y), func() string { return x + y })
		}
	}
	if x, ok := args[0].(int); ok {
		if y, ok := args[1].(int); ok {
			return x + y, nil
		}
	}
	x, ok := toFloat(args[0])
	y, also := toFloat(args[1])
	if !ok || !also {
		return nil, fmt.Errorf("%s + %s: + adds two numbers or two texts", valueKind(args[0]), valueKind(args[1]))
	}
	return x + y, nil
}

// grown returns a text of n bytes if that is allowed.
func (e *evaluation) grown(n int, text func() string) (any, error) {
	if n < 0 || n > maxValueBytes {
		return nil, errTooBig
	}
	if err := e.charge(n / 64); err != nil {
		return nil, err
	}
	return text(), nil
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	}
	return 0, false
}

func valueKind(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case string:
		return "a text"
	case bool:
		return "true or false"
	case float64, int:
		return "a number"
	case []any:
		return "a list"
	}
	return "a mapping"
}

func (p *program) run(env *engine.Env) (v any, err error) {
	defer func() {
		if r := recover(); r != nil {
			v, err = nil, fmt.Errorf("%v", r)
		}
	}()
	e := &evaluation{until: time.Now().Add(maxExprTime)}
	machine := vm.VM{MemoryBudget: maxExprMemory}
	v, err = machine.Run(p.code, p.environment(env, e))
	if err == nil {
		return v, nil
	}
	for _, known := range []error{errSteps, errTime, errTooBig} {
		if errors.Is(err, known) {
			return nil, known
		}
	}
	if !p.there(env) {
		return nil, errNotYet
	}
	return nil, errors.New(plainError("", err).message[len("does not compile: "):])
}

func (p *program) environment(env *engine.Env, e *evaluation) map[string]any {
	vars := map[string]any{}
	for _, v := range p.world.vars {
		vars[v.Name] = v.Default
	}
	maps.Copy(vars, env.Vars)
	steps := map[string]any{}
	for id, s := range env.Steps {
		steps[id] = map[string]any{"answer": s.Answer, "status": s.Status, "attempt": s.Attempt, "stdout": s.Stdout}
	}
	gates := map[string]any{}
	for id, g := range env.Gates {
		gates[id] = map[string]any{"answer": g.Answer, "verdict": g.Verdict, "score": g.Score, "feedback": g.Feedback}
	}
	m := map[string]any{
		"run": env.Run, "workflow": env.Workflow, "vars": vars, "steps": steps, "gates": gates, "step": env.Step,
		"attempt": env.Attempt, "gate": env.Gate, "answer": env.Answer, "score": env.Score, "scores": orNil(env.Scores),
		"findings": orNil(env.Findings), "failures": env.Failures, "exhausted": env.Exhausted,
	}
	for _, name := range firingNames() {
		m[name] = env.Event[name]
	}
	m["task"], m["tasks"] = orNil(env.Task), orNil(env.Tasks)
	m[tallyName] = map[string]any{"total": env.Tally.Total, "done": env.Tally.Done, "failed": env.Tally.Failed,
		"blocked": env.Tally.Blocked}
	for name, f := range map[string]guarded{tickName: e.tick, addName: e.add, byName: e.by, "join": e.join,
		"replace": e.replace, "repeat": e.repeat, "string": e.text, "toJSON": e.json} {
		m[name] = f
	}
	return m
}

func orNil[T map[string]any | []any](v T) any {
	if v == nil {
		return nil
	}
	return v
}

// there reports whether everything the program names exists by now.
func (p *program) there(env *engine.Env) bool {
	none := map[string]bool{"task": env.Task == nil, "tasks": env.Tasks == nil, "answer": env.Answer == nil,
		"score": env.Score == nil, "scores": env.Scores == nil, "findings": env.Findings == nil}
	for _, r := range p.reads {
		missing := none[r.root]
		switch r.root {
		case "steps":
			_, ok := env.Steps[r.id]
			missing = r.id != "" && (!ok || env.Steps[r.id].Answer == nil)
		case "gates":
			_, ok := env.Gates[r.id]
			missing = r.id != "" && !ok
		}
		if missing {
			return false
		}
	}
	return true
}

func (p *program) condition(env *engine.Env) (bool, error) {
	v, err := p.run(env)
	if err != nil {
		if kind, ok := strings.CutPrefix(err.Error(), "invalid operation: true or false("); ok {
			err = fmt.Errorf("a condition gives true or false, this one gave a %s", strings.TrimSuffix(kind, ")"))
		}
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("a condition gives true or false, this one gave %s", valueKind(v))
	}
	return b, nil
}

// printed returns the program's value as a text; a missing value is empty.
func (p *program) printed(env *engine.Env) (string, error) {
	v, err := p.run(env)
	if errors.Is(err, errNotYet) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return print(v)
}

func (p *program) value(env *engine.Env) (any, error) {
	v, err := p.run(env)
	if err != nil {
		return nil, err
	}
	if v == nil && !p.there(env) {
		return nil, errNotYet
	}
	b, err := bounded(v)
	if err != nil {
		return nil, err
	}
	var plain any
	err = json.Unmarshal(b, &plain)
	return plain, err
}

// print formats a value for a text: a text unchanged, anything else as JSON; nil is empty.
func print(v any) (string, error) {
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		if len(v) > maxValueBytes {
			return "", errTooBig
		}
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	b, err := bounded(v)
	return string(b), err
}

// bounded returns v as JSON if that is not too long: lists may contain one long value many times.
func bounded(v any) ([]byte, error) {
	if sizeOf(v, maxValueBytes) < 0 {
		return nil, errTooBig
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("it gives no JSON: %w", err)
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// sizeOf returns what is left of room after v; negative if v does not fit.
func sizeOf(v any, room int) int {
	room -= 2
	switch v := v.(type) {
	case string:
		return room - len(v)
	case []any:
		for _, x := range v {
			if room = sizeOf(x, room); room < 0 {
				return room
			}
		}
	case map[string]any:
		for k, x := range v {
			if room = sizeOf(x, room-len(k)); room < 0 {
				return room
			}
		}
	}
	return room
}
