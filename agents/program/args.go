package program

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Launch is what a launch asks of a program.
type Launch struct {
	Model  string          // "" = the program's own choice
	Dirs   []string        // folders beside the one it works in that it may write to, absolute
	Schema json.RawMessage // a JSON Schema that its answer has to fit; nil = none
	// SchemaFile is a file that holds the schema as SchemaFile gives it; "" = there is none.
	SchemaFile string
	// MaxCostUSD is what it may cost, where the program can hold to that by itself; 0 = no bound.
	MaxCostUSD float64
	// Contained: a sandbox of sluice's holds it, so that one of its own adds nothing.
	Contained bool
	// Resume is a conversation to go on with, as Result.Session named it; "" = a new one.
	Resume string
	// ReadOnly: it judges, and has nothing to write but its answer.
	ReadOnly bool
	// Args are arguments of the role's, for the program behind its own command; those that Refused names are not among them.
	Args []string
}

// Args are the arguments that have the program of a format work by itself and tell what it does; the prompt comes on its
// standard input. given are the arguments that its command has already: what they say is not said again, so that who
// writes a permission mode or a sandbox there has it.
func Args(format string, given []string, l Launch) []string {
	p, a := profileOf(format), args{given: given}
	// Before the program's own name stands what starts it: docker exec, ssh -p 22.
	if i := slices.IndexFunc(given, func(arg string) bool { return filepath.Base(arg) == format }); i >= 0 {
		a.given = given[i+1:]
	}
	if len(p.command) > 0 && !slices.ContainsFunc(p.command, func(name string) bool { return slices.Contains(a.given, name) }) {
		a.add(p.command[0])
	}
	a.given = slices.Concat(a.given, l.Args)
	a.add(l.Args...)
	if p.args != nil {
		p.args(&a, l)
	}
	return a.out
}

// CanResume says that a program whose command is given can go on with the conversation: it keeps them, and id is the name of
// one.
func CanResume(format string, given []string, id string) bool {
	a := args{given: given}
	return Known(format) && regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{7,63}$`).MatchString(id) && !a.has(profileOf(format).alone...)
}

// Words that several programs have for what a role may not add.
const (
	stream  = "sluice sets what it prints: with another output nobody could tell what it did"
	session = "sluice says which conversation it goes on with: give the step a `session`"
	prompt  = "sluice gives it its prompt, on standard input"
	answer  = "sluice gives it the schema of its answer"
	model   = "its model is set by roles.NAME.model"
)

// Refused finds the first argument that a role may not add to a program of the format, as sluice says it itself, or reads by
// it; why says what to do instead. The agent's own command may have it: who writes that sees the whole.
func Refused(format string, args []string) (arg, why string) {
	if len(args) > 0 && Known(format) && !strings.HasPrefix(args[0], "-") {
		return args[0], "the first of the arguments is no option: it would be taken for the prompt, or for a command"
	}
	refused := profileOf(format).refused
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if len(name) > 2 && name[0] == '-' && name[1] != '-' {
			name = name[:2] // -mNAME
		}
		if why := refused[name]; why != "" {
			return arg, why
		}
	}
	return "", ""
}

// Passed are the names and patterns of the daemon's variables that a program is to get: its key, its address, its folder.
func Passed(format string) []string {
	if !Known(format) {
		return nil
	}
	return append(proxies(), profileOf(format).passed...)
}

// proxies are the variables by which a program finds its way out of a closed network.
func proxies() []string {
	return []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"}
}

// args gathers arguments.
type args struct{ given, out []string }

func (a *args) add(words ...string) { a.out = append(a.out, words...) }

// has reports whether the command gives one of the options.
func (a *args) has(names ...string) bool {
	return slices.ContainsFunc(a.given, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(names, name)
	})
}

// flag adds an option without a value, by its first name.
func (a *args) flag(names ...string) {
	if !a.has(names...) {
		a.add(names[0])
	}
}

// option adds an option with its value; others are other names of it.
func (a *args) option(name, value string, others ...string) {
	if !a.has(append(others, name)...) {
		a.add(name, value)
	}
}
