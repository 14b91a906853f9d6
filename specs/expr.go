package specs

import (
	"errors"
	"fmt"
	"slices"
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
	inChild // what a child run returns to its parent
)

func (s scope) names() []string {
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

func (w *world) asked(c *compiler, d *gateDoc) {
	if d.Reviewer == nil || d.Reviewer.Level.value != engine.LevelHuman {
		return
	}
	source := []byte(d.Answer.inline)
	if d.Answer.path.set() {
		if c.schemas == nil || badPath(d.Answer.path.value) != "" {
			return
		}
		b, err := c.schemas(d.Answer.path.value)
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

func (w *world) varNames() (names []string) {
	for _, v := range w.vars {
		names = append(names, v.name)
	}
	return names
}

type program struct {
	world *world
	scope scope
	mode  mode
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
const allowedBuiltins = " all none any one filter map find findIndex findLast findLastIndex count sum groupBy sortBy reduce" +
	" len type abs ceil floor round int float trim trimPrefix trimSuffix upper lower split indexOf lastIndexOf hasPrefix" +
	" hasSuffix max min mean median fromJSON first last get take keys values toPairs fromPairs reverse sort "

func builtinNames() (out []string) {
	return append(strings.Fields(allowedBuiltins), guardedNames()...)
}

func (w *world) options(s scope) []expr.Option {
	vars := types.Map{}
	for _, v := range w.vars {
		vars[v.name] = types.Any
		if v.value != nil {
			vars[v.name] = types.TypeOf(v.value)
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
	for _, name := range guardedNames() {
		env[name] = types.TypeOf(guarded(nil))
	}
	env[tallyName] = types.Any
	env[tickName] = types.TypeOf(guarded(nil))
	env[addName] = types.TypeOf(guarded(nil))
	opts := []expr.Option{expr.Env(env), expr.Optimize(false), expr.MaxNodes(maxExprNodes)}
	for name := range conf.CreateNew().Builtins {
		if !strings.Contains(allowedBuiltins, " "+name+" ") {
			opts = append(opts, expr.DisableBuiltin(name))
		}
	}
	return opts
}

// compile checks an expression and prepares it to run.
func (w *world) compile(src string, s scope, m mode, near func(string, []string) string) (p *program, faults []exprFault) {
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
	c := &checker{world: w, scope: s, near: near, locals: map[string]bool{}, facts: map[ast.Node]bool{}, named: map[ast.Node]bool{}}
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
	return &program{world: w, scope: s, mode: m, code: code, reads: c.reads}, nil
}

// plainError rewords the library's error.
func plainError(src string, err error) exprFault {
	var fe *file.Error
	if !errors.As(err, &fe) {
		return exprFault{0, "does not compile: " + firstLine(err.Error())}
	}
	offset := fe.From
	if offset > utf8.RuneCountInString(src) {
		offset = 0
	}
	why := strings.NewReplacer("map[string]interface {}", "mapping", "map[string]any", "mapping", "[]interface {}", "list",
		"interface {}", "value", "float64", "number", "string", "text", "int", "number", "bool", "true or false").Replace(firstLine(fe.Message))
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

const idBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

func nameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// outside reports for each byte whether it is in a quoted text of the expression.
func outside(src string) []bool {
	in := make([]bool, len(src))
	var q byte
	for i := 0; i < len(src); i++ {
		c := src[i]
		in[i] = q != 0
		switch {
		case q == 0 && (c == '"' || c == '\'' || c == '`'):
			q, in[i] = c, true
		case q != 0 && c == '\\' && q != '`' && i+1 < len(src):
			i++
			in[i] = true
		case c == q:
			q = 0
		}
	}
	return in
}

type checker struct {
	world  *world
	scope  scope
	near   func(string, []string) string
	locals map[string]bool
	faults []exprFault
	reads  []reading
	facts  map[ast.Node]bool // identifiers of which only the engine's facts are read
	named  map[ast.Node]bool // those of which one member is read, by name
}

// survey collects what the checks need first: the names that `let` defines, and the facts.
func (c *checker) survey(n ast.Node) {
	ast.Walk(&n, visitor(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.VariableDeclaratorNode:
			c.locals[n.Name] = true
		case *ast.MemberNode:
			if root := factOf(n); root != nil {
				c.facts[root] = true
			}
			if _, ok := n.Property.(*ast.StringNode); ok {
				c.named[n.Node] = true
			}
		}
	}))
}

// factOf returns the identifier in task.attempt, steps.X.status and the like, which agents cannot
// influence; otherwise nil.
func factOf(n *ast.MemberNode) ast.Node {
	property, ok := n.Property.(*ast.StringNode)
	if !ok {
		return nil
	}
	// a task's id is not: agents add tasks
	name, facts, of := "task", []string{"attempt", "depth"}, n.Node
	if inner, ok := of.(*ast.MemberNode); ok {
		name, facts, of = "steps", []string{"attempt", "status"}, inner.Node
	}
	if root, ok := of.(*ast.IdentifierNode); ok && root.Value == name && slices.Contains(facts, property.Value) {
		return root
	}
	return nil
}

type visitor func(ast.Node)

func (v visitor) Visit(n *ast.Node) { v(*n) }

func (c *checker) fault(n ast.Node, format string, args ...any) {
	c.faults = append(c.faults, exprFault{n.Location().From, fmt.Sprintf(format, args...)})
}

// Visit checks one node, after its children.
func (c *checker) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.IdentifierNode:
		c.name(n)
	case *ast.MemberNode:
		c.member(n)
		c.answered(n)
	}
}

func (c *checker) name(n *ast.IdentifierNode) {
	known := c.scope.names()
	switch {
	case c.locals[n.Value] || slices.Contains(guardedNames(), n.Value):
	case slices.Contains(known, n.Value):
		c.reads = append(c.reads, reading{root: n.Value, fact: c.facts[n], whole: !c.named[n]})
		c.world.tasks = c.world.tasks || n.Value == "tasks"
	case c.scope != inVars && slices.Contains(append(inGate.names(), inDone.names()...), n.Value):
		c.fault(n, "%s is not known here: here are %s", n.Value, strings.Join(known, ", "))
	case c.scope == inVars:
		c.fault(n, "%s is not known here: a value that is fixed when the run starts reads vars only", quote(n.Value))
	default:
		all := append(slices.Clone(known), builtinNames()...)
		hint := c.near(n.Value, all)
		if hint == "" && slices.Contains(c.world.varNames(), n.Value) {
			hint = fmt.Sprintf(": write vars.%s", n.Value)
		}
		if hint == "" {
			hint = ": here are " + strings.Join(known, ", ")
		}
		c.fault(n, "unknown name %s%s", quote(n.Value), hint)
	}
}

func (c *checker) member(n *ast.MemberNode) {
	property, ok := n.Property.(*ast.StringNode)
	if !ok {
		return
	}
	if root, ok := n.Node.(*ast.IdentifierNode); ok && !c.locals[root.Value] {
		var known []string
		switch root.Value {
		case "vars":
			known = c.world.varNames()
		case "steps":
			known = c.world.steps
		case "gates":
			known = c.world.gates
		default:
			return
		}
		c.reads = append(c.reads, reading{root: root.Value, id: property.Value})
		if !slices.Contains(known, property.Value) {
			noun := strings.TrimSuffix(root.Value, "s")
			hint := c.near(property.Value, known)
			if root.Value == "vars" && hint == "" {
				hint = ": declare it under workflow.vars"
			}
			c.fault(property, "unknown %s %s%s", noun, quote(property.Value), hint)
		}
		return
	}
	inner, ok := n.Node.(*ast.MemberNode)
	if !ok {
		return
	}
	root, ok := inner.Node.(*ast.IdentifierNode)
	if !ok || c.locals[root.Value] {
		return
	}
	known := map[string][]string{"steps": {"answer", "status", "attempt", "stdout"}, "gates": {"answer", "verdict", "score", "feedback"}}[root.Value]
	if known != nil && !slices.Contains(known, property.Value) {
		hint := c.near(property.Value, known)
		if hint == "" {
			hint = ": it has " + strings.Join(known, ", ")
		}
		c.fault(property, "a %s has no %s%s", strings.TrimSuffix(root.Value, "s"), quote(property.Value), hint)
	}
	if id, ok := inner.Property.(*ast.StringNode); ok && root.Value == "gates" && property.Value == "answer" {
		if names, known := c.world.asks[id.Value]; known && len(names) == 0 {
			c.fault(property, "gate %s asks a person, and for no answer: give it `answer`", id.Value)
		}
	}
}

func (c *checker) answered(n *ast.MemberNode) {
	property, ok := n.Property.(*ast.StringNode)
	answer, ok2 := n.Node.(*ast.MemberNode)
	if !ok || !ok2 {
		return
	}
	word, ok := answer.Property.(*ast.StringNode)
	gate, ok2 := answer.Node.(*ast.MemberNode)
	if !ok || !ok2 || word.Value != "answer" {
		return
	}
	id, ok := gate.Property.(*ast.StringNode)
	root, ok2 := gate.Node.(*ast.IdentifierNode)
	if !ok || !ok2 || root.Value != "gates" || c.locals[root.Value] {
		return
	}
	if names := c.world.asks[id.Value]; len(names) > 0 && !slices.Contains(names, property.Value) {
		hint := c.near(property.Value, names)
		if hint == "" {
			hint = ": it has " + strings.Join(names, ", ")
		}
		c.fault(property, "the answer that gate %s asks for has no %s%s", id.Value, quote(property.Value), hint)
	}
}
