package specs

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
	"github.com/expr-lang/expr/vm"

	"sluice/engine"
	"sluice/internal/schema"
)

// Limits of one expression.
const (
	maxExprBytes = 4 << 10
	maxExprNodes = 1000
)

// scope is where an expression is used, and so which names it may use.
type scope int

const (
	inVars scope = iota // counts, durations and other values fixed when a run starts
	inStep              // before the step runs
	inDone              // a step's outputs: its answer exists
	inGate
	inChild  // what a child run returns to its parent
	inFiring // in `on: with`
)

func (s scope) names() []string {
	if s == inFiring {
		return firingNames()
	}
	out := []string{"vars"}
	if s == inVars {
		return out
	}
	out = append(out, "run", "workflow", "steps", "gates", "task", "tasks")
	switch s {
	case inChild:
		return out
	case inDone:
		return append(out, "step", "attempt", "answer")
	case inGate:
		return append(out, "gate", "step", "answer", "score", "scores", "findings", "failures", "exhausted")
	}
	return append(out, "step", "attempt")
}

// mode is what an expression is for.
type mode int

const (
	asCond  mode = iota // a bool; a missing value is an error
	asText              // a text; a missing value is empty
	asValue             // any value; a missing value is an error
)

// world is what the expressions of one spec can use.
type world struct {
	vars  []varDoc
	steps []string
	gates []string
	tasks bool                // some expression reads them
	said  map[string]bool     // vars whose values agents influence
	asks  map[string][]string // the properties of answers at human gates with a known schema; none: no answer
}

func (w *world) asked(c *values, d *gateDoc) {
	if d.Reviewer == nil || d.Reviewer.Level.value != engine.LevelHuman {
		return
	}
	source := []byte(d.Answer.inline)
	if d.Answer.path.set() {
		if c.from.schemas == nil || badPath(d.Answer.path.value) != "" {
			return
		}
		b, err := c.from.schemas(d.Answer.path.value)
		if err != nil {
			return // reported where the gate is compiled
		}
		source = b
	}
	var names []string
	if d.has("answer") {
		s, err := schema.Compile(source)
		if err != nil {
			return
		}
		for _, p := range s.Properties() {
			names = append(names, p.Name)
		}
	}
	if w.asks == nil {
		w.asks = map[string][]string{}
	}
	w.asks[d.ID.value] = names
}

func varNames(vars []varDoc) (names []string) {
	for _, v := range vars {
		names = append(names, v.Name)
	}
	return names
}

type program struct {
	world *world
	code  *vm.Program
	reads []reading
}

// reading is one thing that an expression reads: a root and, for steps and gates, which one.
type reading struct {
	root, id string
	fact     bool // of a step or a task, only what the engine reports: its status, its attempt
	whole    bool // of vars, steps and gates: all of them, or one not named
}

// exprFault is a fault in an expression, at one of its runes.
type exprFault struct {
	offset  int
	message string
}

// allowedBuiltins are the pure functions of expr-lang that grow no value without limit; guarded.go
// replaces the others.
const allowedBuiltins = " all none any one filter map find findIndex findLast findLastIndex count sum groupBy " +
	"sortBy reduce" +
	" len type abs ceil floor round int float trim trimPrefix trimSuffix upper lower split indexOf lastIndexOf hasPrefix" +
	" hasSuffix max min mean median fromJSON first last get take keys values toPairs fromPairs reverse sort "

func builtinNames() (out []string) {
	return append(strings.Fields(allowedBuiltins), guardedNames()...)
}

func (w *world) options(s scope) []expr.Option {
	vars := types.Map{}
	for _, v := range w.vars {
		vars[v.Name] = types.Any
		if v.Default != nil {
			vars[v.Name] = types.TypeOf(v.Default)
		}
	}
	env := types.Map{"vars": vars}
	for _, name := range s.names() {
		switch name {
		case "vars":
		case "run", "workflow", "step", "gate":
			env[name] = types.String
		case "attempt", "failures":
			env[name] = types.Int
		case "exhausted":
			env[name] = types.Bool
		default:
			env[name] = types.Any
		}
	}
	for _, name := range append(guardedNames(), tickName, addName, byName) {
		env[name] = types.TypeOf(guarded(nil))
	}
	env[tallyName] = types.Any
	opts := []expr.Option{expr.Env(env), expr.Optimize(false), expr.MaxNodes(maxExprNodes)}
	for name := range conf.CreateNew().Builtins {
		if !strings.Contains(allowedBuiltins, " "+name+" ") {
			opts = append(opts, expr.DisableBuiltin(name))
		}
	}
	return opts
}

// compile checks an expression and prepares it to run.
func (w *world) compile(src string, s scope, m mode,
	near func(string, []string) string) (p *program, faults []exprFault) {
	defer func() { // the library's parser may panic
		if r := recover(); r != nil {
			p, faults = nil, []exprFault{{0, fmt.Sprintf("does not compile: %v", r)}}
		}
	}()
	if len(src) > maxExprBytes {
		return nil, []exprFault{{0, fmt.Sprintf("the expression has more than %d bytes", maxExprBytes)}}
	}
	if faults := w.dashes(src); faults != nil {
		return nil, faults
	}
	opts := w.options(s)
	config := conf.CreateNew()
	for _, o := range opts {
		o(config)
	}
	tree, err := parser.ParseWithConfig(src, config)
	if err != nil {
		return nil, []exprFault{plainError(src, err)}
	}
	c := &checker{world: w, scope: s, near: near, locals: map[string]bool{}, facts: map[ast.Node]bool{},
		named: map[ast.Node]bool{}}
	c.survey(tree.Node)
	ast.Walk(&tree.Node, c)
	if c.faults != nil {
		return nil, c.faults
	}
	if m == asCond {
		opts = append(opts, expr.AsBool())
	}
	code, err := expr.Compile(src, append(opts, expr.Patch(&patcher{text: m == asText}))...)
	if err != nil {
		return nil, []exprFault{plainError(src, err)}
	}
	return &program{world: w, code: code, reads: c.reads}, nil
}

// plainError rewords the library's error.
func plainError(src string, err error) exprFault {
	fe, ok := errors.AsType[*file.Error](err)
	if !ok {
		return exprFault{0, "does not compile: " + firstLine(err.Error())}
	}
	offset := fe.From
	if offset > utf8.RuneCountInString(src) {
		offset = 0
	}
	why := strings.NewReplacer("map[string]interface {}", "mapping", "map[string]any", "mapping", "[]interface {}", "list",
		"interface {}", "value", "float64", "number", "string", "text", "int", "number", "bool",
		"true or false", `Operator("=")`, `Operator("="): to compare, write ==`).Replace(firstLine(fe.Message))
	return exprFault{offset, "does not compile: " + why}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// dashes finds ids with a character that names cannot have: steps.X-1 would mean steps.X minus 1.
func (w *world) dashes(src string) (faults []exprFault) {
	for i, quoted := range outside(src) {
		if quoted {
			continue
		}
		for root, ids := range map[string][]string{"steps": w.steps, "gates": w.gates} {
			rest, ok := strings.CutPrefix(src[i:], root+".")
			if !ok || i > 0 && (nameByte(src[i-1]) || src[i-1] == '.') {
				continue
			}
			best := rest[:len(rest)-len(strings.TrimLeft(rest, idBytes))]
			for _, id := range ids { // an id may contain dots too
				if after, ok := strings.CutPrefix(rest, id); ok && len(id) > len(best) && (after == "" || !nameByte(after[0])) {
					best = id
				}
			}
			if !identifier(best) && best != "" {
				faults = append(faults, exprFault{utf8.RuneCountInString(src[:i]), fmt.Sprintf(
					"%s.%s does not name %s here: write %s[%q]", root, best, best, root, best)})
			}
		}
	}
	return faults
}

// nameBytes are those of names in expressions, and idBytes those of ids without dots.
const (
	nameBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
	idBytes   = nameBytes + "-"
)

func nameByte(c byte) bool { return strings.IndexByte(nameBytes, c) >= 0 }
