package program

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
)

// Formats of a stream, named after their programs.
const (
	Claude   = "claude"
	Codex    = "codex"
	Opencode = "opencode"
)

// StandIns is the format in which a stand-in reports a usage limit.
const StandIns = Claude

// profiles returns the programs, by name and with a function that makes the profile.
func profiles() []named {
	return []named{{Claude, claude}, {Codex, codex}, {Opencode, opencode}}
}

type named struct {
	name string
	make func() profile
}

// profile is all that sluice knows of a program. Unset members do not apply to it.
type profile struct {
	// How it is launched.
	command []string            // the subcommand for unattended work, and its other names
	args    func(*args, Launch) // adds the arguments of a launch
	refused map[string]string   // arguments that a role may not add, and why
	passed  []string            // the daemon's variables it gets besides proxies: names and patterns
	vars    func(variable func(string) string, dirs []string) map[string]string
	former  []string // its command as a text agent, before it was built in; the prompt was an argument
	strict  bool     // its answer's schema comes in a file, in the form of Strict

	// What it prints.
	read func(r *Reader, line []byte) (out []Event, whole bool) // whole: the line is an event
	// the start of an event that may appear within another's line
	within string
	since  func(u, base Usage) (launch, total Usage) // if it counts the whole conversation
	noCost bool                                      // it counts only tokens

	// Its conversations.
	alone  []string                    // arguments with which it keeps none, or which name one
	resume []string                    // the command that opens one for a person, without the name
	kept   func(session string) string // its file below the program's folder, as a pattern
	gone   []string                    // messages if one does not exist

	// Its own files.
	homes map[string]string // variables of its folders, and their folders below a private home
	seeds func(variable func(string) string, home string) []Seed
	login [2]string // one of these variables, and the login file in its folder
	keys  []string  // variables that replace a login

	// Its npm package, if that has a launcher for the program.
	npm string
	// candidate paths of the program in the package or the one for this machine
	native func(pkg, machine string) []string
}

// profileOf returns the profile of a format; empty unless Known.
func profileOf(format string) profile {
	for _, p := range profiles() {
		if p.name == format {
			return p.make()
		}
	}
	return profile{}
}

// Names returns the known formats, which are the names of their programs.
func Names() (out []string) {
	for _, p := range profiles() {
		out = append(out, p.name)
	}
	return out
}

// Known reports whether there is a reader for the format.
func Known(format string) bool { return slices.Contains(Names(), format) }

// TellsCost reports whether a program reports its cost in USD.
func TellsCost(format string) bool { return Known(format) && !profileOf(format).noCost }

// Vars returns further variables that a program needs; variable reads the daemon's environment,
// dirs are those of its Launch.
func Vars(format string, variable func(string) string, dirs []string) map[string]string {
	if vars := profileOf(format).vars; vars != nil {
		return vars(variable, dirs)
	}
	return nil
}

// Former returns the command by which a program was a text agent, with its prompt as an argument,
// before it was built in; nil if it always was.
func Former(name string) []string { return profileOf(name).former }

// SchemaFile returns the content of the file for an answer's schema; nil if the program uses no
// file or cannot handle this schema. mayNull is Strict's.
func SchemaFile(format string, schema json.RawMessage, mayNull bool) json.RawMessage {
	if !profileOf(format).strict {
		return nil
	}
	return Strict(schema, mayNull)
}

// KeepsFiles reports whether a program keeps each conversation in a file, which Transcript finds.
func KeepsFiles(format string) bool { return profileOf(format).kept != nil }

// Login returns the program's login file and the variables that replace a login. variable reads the
// environment; home is the person's. file is "" if the login cannot be checked.
func Login(format string, variable func(string) string, home string) (file string, keys []string) {
	p := profileOf(format)
	if p.login[1] == "" {
		return "", nil
	}
	dir := cmp.Or(variable(p.login[0]), filepath.Join(home, p.homes[p.login[0]]))
	return filepath.Join(dir, p.login[1]), p.keys
}
