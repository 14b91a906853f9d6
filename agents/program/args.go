package program

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Launch is the input of a program's launch.
type Launch struct {
	Model  string          // "" = the program's default
	Dirs   []string        // folders beside its working folder that it may write to, absolute
	Schema json.RawMessage // a JSON Schema for its answer; nil = none
	// SchemaFile is a file with the schema from the function SchemaFile; "" = none.
	SchemaFile string
	// MaxCostUSD is its cost limit, if the program can enforce one itself; 0 = none.
	MaxCostUSD float64
	// Contained: sluice's sandbox holds it, so its own would add nothing.
	Contained bool
	// Resume is a conversation to continue, by its Result.Session; "" = a new one.
	Resume string
	// ReadOnly: it judges, and writes only its answer.
	ReadOnly bool
	// Args are the role's arguments, added after the program's own command; Refused has excluded
	// some.
	Args []string
}

// Args returns the arguments that make a program of a format work unattended and report what it
// does; the prompt comes on standard input. given are the arguments of its command, which Args does
// not repeat: a permission mode or a sandbox set there wins.
func Args(format string, given []string, l Launch) []string {
	p, a := profileOf(format), args{given: given}
	// A starter such as docker exec or ssh -p 22 precedes the program's own name.
	if i := slices.IndexFunc(given, func(arg string) bool { return filepath.Base(arg) == format }); i >= 0 {
		a.given = given[i+1:]
	}
	if len(p.command) > 0 && !slices.ContainsFunc(p.command,
		func(name string) bool { return slices.Contains(a.given, name) }) {
		a.add(p.command[0])
	}
	a.given = slices.Concat(a.given, l.Args)
	a.add(l.Args...)
	if p.args != nil {
		p.args(&a, l)
	}
	return a.out
}

// CanResume reports whether a program with the given command can continue the conversation: it
// keeps conversations, and id is a valid name.
func CanResume(format string, given []string, id string) bool {
	a := args{given: given}
	return Known(format) && regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{7,63}$`).MatchString(id) &&
		!a.has(profileOf(format).alone...)
}

// Reasons shared by several programs for arguments a role may not add.
const (
	stream  = "sluice sets what it prints: other output could not be read"
	session = "sluice chooses which conversation it continues: give the step a `session`"
	prompt  = "sluice passes its prompt on standard input"
	answer  = "sluice passes the schema of its answer"
	model   = "its model is set by roles.NAME.model"
)

// Refused returns the first argument that a role may not add to a program of the format, because
// sluice sets it or depends on it; why says what to do instead. The agent's own command may have
// it, as its author sees the whole.
func Refused(format string, args []string) (arg, why string) {
	if len(args) > 0 && Known(format) && !strings.HasPrefix(args[0], "-") {
		return args[0], "the first argument is not an option: it would be taken for the prompt, or for a command"
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

// Passed returns names and patterns of the daemon's variables for a program: its key, its address,
// its folder.
func Passed(format string) []string {
	if !Known(format) {
		return nil
	}
	return append(proxies(), profileOf(format).passed...)
}

// proxies returns the variables by which a program finds its way out of a closed network.
func proxies() []string {
	return []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy",
		"all_proxy", "no_proxy"}
}

type args struct{ given, out []string }

func (a *args) add(words ...string) { a.out = append(a.out, words...) }

// has reports whether the command has one of the options.
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

// option adds an option with its value; others are its other names.
func (a *args) option(name, value string, others ...string) {
	if !a.has(append(others, name)...) {
		a.add(name, value)
	}
}
