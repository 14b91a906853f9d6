package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// archonRef is a reference to a node's output: $node.output or $node.output.field.
const archonRef = `\$([A-Za-z_][A-Za-z0-9_-]*)\.output((?:\.[A-Za-z_][A-Za-z0-9_]*)?)`

// archonVar is a variable that Archon replaces.
const archonVar = `\$\{?(ARGUMENTS|USER_MESSAGE|WORKFLOW_ID|ARTIFACTS_DIR|STATE_DIR|BASE_BRANCH|DOCS_DIR|CONTEXT|` +
	`EXTERNAL_CONTEXT|ISSUE_CONTEXT|LOOP_USER_INPUT|LOOP_PREV_OUTPUT|REJECTION_REASON)\b\}?`

const archonInput = `\$INPUTS\.([A-Za-z_][A-Za-z0-9_-]*)`

// archonAll has all of them: groups 1 and 2 are of archonRef, 3 of archonInput, 4 of archonVar.
const archonAll = archonRef + `|` + archonInput + `|` + archonVar

// named returns the node that an original's name means in a scope; of an included workflow, its last.
func (a *archon) named(of string, scope *archonScope) *archonNode {
	id := a.lasts(scope.ids[of])[0]
	for _, x := range a.nodes {
		if x.id == id {
			return x
		}
	}
	return nil
}

// references marks the nodes whose output others read, so that they give one.
func (a *archon) references() {
	ref := regexp.MustCompile(archonRef)
	for _, x := range a.nodes {
		words := []string{}
		for _, p := range pairs(x.n) {
			words = append(words, str(p.value))
			for _, q := range pairs(p.value) {
				words = append(words, str(q.value))
			}
		}
		for _, w := range x.when {
			words = append(words, str(w.n))
		}
		if name := str(get(x.n, "command")); name != "" {
			text, _ := a.src.text(a.commandFile(name)) // command reports one that cannot be read
			words = append(words, text)
		}
		for s := x.scope; s != nil; s = s.outer {
			for _, in := range s.inputs {
				words = append(words, in)
			}
		}
		for _, m := range ref.FindAllStringSubmatch(strings.Join(words, "\n"), -1) {
			for s := x.scope; s != nil; s = s.outer {
				if y := a.named(m[1], s); y != nil {
					y.read = true
				}
			}
		}
	}
}

// output is the expression for a node's output, or a field of it.
func (a *archon) output(of, fields string, scope *archonScope) (expr string, ok bool) {
	x := a.named(of, scope)
	if x == nil {
		return "", false
	}
	path := strings.FieldsFunc(fields, func(r rune) bool { return r == '.' })
	switch {
	case x.kind == "approval":
		return fmt.Sprintf("gates[%q]?.answer?.response", x.gateID()), true
	case x.kind == "bash" || x.kind == "script":
		return printed(x.id, path), true
	case len(path) == 0 && get(x.n, "output_format") == nil:
		return answerOf(x.id, "output"), true
	}
	return answerOf(x.id, path...), true
}

func (x *archonNode) gateID() string { return x.id + "-gate" }

// variable is what stands for a variable of Archon; declared as a var of the flow where it needs one.
func (a *archon) variable(name string, x *archonNode) string {
	of := variable{name: "context", value: quoted(""), description: "of the issue or pull request ($CONTEXT)"}
	switch name {
	case "ARGUMENTS", "USER_MESSAGE":
		of = variable{name: "arguments", description: "what is asked for ($ARGUMENTS)"}
	case "WORKFLOW_ID":
		return embed("run")
	case "ARTIFACTS_DIR":
		return "$SLUICE_FILES"
	case "STATE_DIR":
		return ".workflow/state"
	case "BASE_BRANCH":
		of = variable{"base_branch", "the branch that the work is for ($BASE_BRANCH)", quoted("main")}
	case "DOCS_DIR":
		of = variable{"docs_dir", "the folder of the documents ($DOCS_DIR)", quoted("docs/")}
	case "LOOP_PREV_OUTPUT":
		return embed(answerOf(x.id, "output"))
	case "LOOP_USER_INPUT", "REJECTION_REASON":
		return embed(fmt.Sprintf("gates[%q]?.feedback", x.gateID()))
	}
	return embed(a.flow.addVar(of))
}

// words puts ours in the place of Archon's references in a prompt.
func (a *archon) words(s string, x *archonNode) string {
	return fill(s, regexp.MustCompile(archonAll), func(m []string) (string, bool) { return a.reference(m, x) })
}

// reference is what stands for a match of archonAll in the texts of x.
func (a *archon) reference(m []string, x *archonNode) (ours string, ok bool) {
	switch node, input := m[1], m[3]; {
	case node != "":
		expr, ok := a.output(node, m[2], x.scope)
		return embed(expr), ok
	case input != "":
		if given, ok := x.scope.inputs[input]; ok && x.scope.outer != nil {
			y := *x
			y.scope = x.scope.outer
			return a.words(given, &y), true
		}
		return embed(a.flow.addVar(variable{name: varName(input), value: quoted("")})), true
	}
	return a.variable(m[4], x), true
}

// condition translates a `when`. why says what of it has no counterpart.
func (a *archon) condition(s string, scope *archonScope) (cond, why string) {
	atom := regexp.MustCompile(`^\s*` + archonRef +
		`\s*(==|!=|>=|<=|>|<)\s*(?:'([^']*)'|"([^"]*)"|(true|false|-?[0-9.]+))\s*`)
	why = fmt.Sprintf("the condition %q is not read", s)
	cond, ok := conjunction(s, atom, func(m []string) (string, bool) {
		expr, ok := a.output(m[1], m[2], scope)
		if !ok {
			why = fmt.Sprintf("no node %q", m[1])
		}
		op, value := m[3], m[4]+m[5]+m[6]
		if op == "==" || op == "!=" {
			return fmt.Sprintf("string(%s ?? \"\") %s %q", expr, op, value), ok
		}
		return fmt.Sprintf("float(%s ?? 0) %s float(%q)", expr, op, value), ok
	})
	if ok {
		why = ""
	}
	return cond, why
}

// skipping finds which nodes may be skipped: by their own condition, or because one that they come
// after may be. So a node waits for those as Archon does.
func (a *archon) skipping() {
	for range a.nodes {
		for _, x := range a.nodes {
			x.skips = x.skips || len(x.when) > 0
			if x.rule == "" || x.rule == "all_success" {
				x.skips = x.skips || slices.ContainsFunc(a.nodes, func(y *archonNode) bool {
					return y.skips && slices.Contains(x.deps, y.id)
				})
			}
		}
	}
}

// whenOf is the condition of a node's step: its own, and that those before it passed.
func (a *archon) whenOf(x *archonNode) string {
	var all []string
	for _, w := range x.when {
		cond, why := a.condition(str(w.n), w.scope)
		if why != "" {
			a.leave(w.n, "%s: the step runs always", why)
			continue
		}
		all = append(all, "("+cond+")")
	}
	var passed []string
	for _, y := range a.nodes {
		if slices.Contains(x.deps, y.id) && (y.skips || a.joinOf(y) != "") {
			passed = append(passed, fmt.Sprintf("steps[%q]?.status == \"passed\"", y.id))
		}
	}
	join := " and "
	switch x.rule {
	case "all_done":
		passed = nil
	case "one_success", "none_failed_min_one_success":
		join = " or "
		if len(passed) < len(x.deps) {
			passed = nil // one of them passes whatever happens
		}
	}
	if len(passed) > 0 {
		all = append(all, "("+strings.Join(passed, join)+")")
	}
	if len(all) == 1 {
		return strings.TrimSuffix(strings.TrimPrefix(all[0], "("), ")")
	}
	return strings.Join(all, " and ")
}
