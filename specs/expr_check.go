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

// chain takes a member apart: gates and [X, answer] for gates.X.answer. A computed name is nil; so is the
// root, where the chain begins with something else than a name.
func chain(n ast.Node) (root *ast.IdentifierNode, names []*ast.StringNode) {
	for {
		switch m := n.(type) {
		case *ast.MemberNode:
			name, _ := m.Property.(*ast.StringNode)
			names, n = append(names, name), m.Node
		case *ast.IdentifierNode:
			slices.Reverse(names)
			return m, names
		default:
			return nil, nil
		}
	}
}

// factOf returns the identifier in task.attempt, steps.X.status and the like, which agents cannot
// influence; otherwise nil.
func factOf(n *ast.MemberNode) ast.Node {
	root, names := chain(n)
	if root == nil || len(names) > 2 || names[len(names)-1] == nil {
		return nil
	}
	of, facts := "task", []string{"attempt", "depth"} // its id is not one: agents add tasks
	if len(names) == 2 {
		of, facts = "steps", []string{"attempt", "status"}
	}
	if root.Value == of && slices.Contains(facts, names[len(names)-1].Value) {
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
	}
}

func (c *checker) name(n *ast.IdentifierNode) {
	known := c.scope.names()
	switch {
	case c.locals[n.Value] || slices.Contains(guardedNames(), n.Value):
	case slices.Contains(known, n.Value):
		c.reads = append(c.reads, reading{root: n.Value, fact: c.facts[n], whole: !c.named[n]})
		c.world.tasks = c.world.tasks || n.Value == "tasks"
	case c.scope == inVars:
		c.fault(n, "%s is not known here: a value that is fixed when the run starts reads vars only", quote(n.Value))
	case slices.Contains(append(inGate.names(), inDone.names()...), n.Value):
		c.fault(n, "%s is not known here: here are %s", n.Value, strings.Join(known, ", "))
	default:
		all := append(slices.Clone(known), builtinNames()...)
		hint := c.near(n.Value, all)
		if hint == "" && slices.Contains(varNames(c.world.vars), n.Value) {
			hint = fmt.Sprintf(": write vars.%s", n.Value)
		}
		if hint == "" {
			hint = ": here are " + strings.Join(known, ", ")
		}
		c.fault(n, "unknown name %s%s", quote(n.Value), hint)
	}
}

// member checks the last name of a chain: a var, a step, a gate, a property of one, or a key of its answer.
func (c *checker) member(n *ast.MemberNode) {
	root, names := chain(n)
	if root == nil || c.locals[root.Value] || names[len(names)-1] == nil {
		return
	}
	last := names[len(names)-1]
	switch len(names) {
	case 1:
		c.entry(root.Value, last)
	case 2:
		c.property(root.Value, names[0], last)
	case 3:
		if root.Value == "gates" && names[0] != nil && names[1] != nil && names[1].Value == "answer" {
			c.answered(names[0].Value, last)
		}
	}
}

// entry checks the name of a var, a step or a gate.
func (c *checker) entry(root string, name *ast.StringNode) {
	all := map[string][]string{"vars": varNames(c.world.vars), "steps": c.world.steps, "gates": c.world.gates}
	known, ok := all[root]
	if !ok {
		return
	}
	c.reads = append(c.reads, reading{root: root, id: name.Value})
	if !slices.Contains(known, name.Value) {
		hint := c.near(name.Value, known)
		if root == "vars" && hint == "" {
			hint = ": declare it under workflow.vars"
		}
		c.fault(name, "unknown %s %s%s", strings.TrimSuffix(root, "s"), quote(name.Value), hint)
	}
}

// property checks the name of a property of a step or a gate; id is nil if it is computed.
func (c *checker) property(root string, id, name *ast.StringNode) {
	known := map[string][]string{"steps": {"answer", "status", "attempt", "stdout"},
		"gates": {"answer", "verdict", "score", "feedback"}}[root]
	if known != nil && !slices.Contains(known, name.Value) {
		hint := cmp.Or(c.near(name.Value, known), ": it has "+strings.Join(known, ", "))
		c.fault(name, "a %s has no %s%s", strings.TrimSuffix(root, "s"), quote(name.Value), hint)
	}
	if id != nil && root == "gates" && name.Value == "answer" {
		if names, known := c.world.asks[id.Value]; known && len(names) == 0 {
			c.fault(name, "gate %s asks a person, and for no answer: give it `answer`", id.Value)
		}
	}
}

// answered checks the name of a part of the answer that a gate asks a person for.
func (c *checker) answered(gate string, name *ast.StringNode) {
	if names := c.world.asks[gate]; len(names) > 0 && !slices.Contains(names, name.Value) {
		hint := cmp.Or(c.near(name.Value, names), ": it has "+strings.Join(names, ", "))
		c.fault(name, "the answer that gate %s asks for has no %s%s", gate, quote(name.Value), hint)
	}
}
