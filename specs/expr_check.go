package specs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

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
	known := map[string][]string{"steps": {"answer", "status", "attempt", "stdout"},
		"gates": {"answer", "verdict", "score", "feedback"}}[root.Value]
	if known != nil && !slices.Contains(known, property.Value) {
		hint := cmp.Or(c.near(property.Value, known), ": it has "+strings.Join(known, ", "))
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
		hint := cmp.Or(c.near(property.Value, names), ": it has "+strings.Join(names, ", "))
		c.fault(property, "the answer that gate %s asks for has no %s%s", id.Value, quote(property.Value), hint)
	}
}
