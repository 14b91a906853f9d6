package program

import (
	"encoding/json"
	"path/filepath"
	"slices"
)

// Formats of a stream, each the name of its program.
const (
	Claude   = "claude"
	Codex    = "codex"
	Opencode = "opencode"
)

// StandIns is the format in which a stand-in tells of a usage limit.
const StandIns = Claude

// profiles are the programs, each by its name and what makes its profile.
func profiles() []named {
	return []named{{Claude, claude}, {Codex, codex}, {Opencode, opencode}}
}

type named struct {
	name string
	make func() profile
}

// profile is all that sluice knows of a program. A member that is not set does not hold of it.
type profile struct {
	// How it is launched.
	command []string            // the subcommand that works without a person, and its other names
	args    func(*args, Launch) // adds the arguments of a launch
	refused map[string]string   // arguments that a role may not add, and why
	passed  []string            // the daemon's variables that it gets beside proxies: names and patterns
	vars    func(variable func(string) string, dirs []string) map[string]string
	former  []string // the command by which it was an agent of text before it was built in; its prompt was an argument
	strict  bool     // the schema of its answer comes in a file, in the form of Strict

	// What it prints.
	read   func(r *Reader, line []byte) (out []Event, whole bool) // whole: the line is an event
	within string                                                 // how an event begins that may stand within another's line
	since  func(u, base Usage) (launch, total Usage)              // where it counts the whole conversation
	noCost bool                                                   // it counts tokens alone

	// Its conversations.
	alone  []string                    // arguments with which it keeps none, or which name one
	resume []string                    // the command that opens one for a person; its name follows
	kept   func(session string) string // where below its folder it keeps one, as a pattern
	gone   []string                    // what it says where one is not there

	// Its own files.
	homes map[string]string // variables of its folders, and where those are below a private home
	seeds func(variable func(string) string, home string) []Seed
	login [2]string // one of these variables, and the file in its folder that has the login
	keys  []string  // variables that stand for a login

	// Its package at npm, where that has a launcher before the program.
	npm    string
	native func(pkg, machine string) []string // where the package, or the one for this machine, has the program
}

// profileOf is the profile of a format; one without members where it is not Known.
func profileOf(format string) profile {
	for _, p := range profiles() {
		if p.name == format {
			return p.make()
		}
	}
	return profile{}
}

// Names are the formats that are known, which are the names of their programs.
func Names() (out []string) {
	for _, p := range profiles() {
		out = append(out, p.name)
	}
	return out
}

// Known reports whether there is a reader for the format.
func Known(format string) bool { return slices.Contains(Names(), format) }

// TellsCost reports whether a program tells what it cost, in USD.
func TellsCost(format string) bool { return Known(format) && !profileOf(format).noCost }

// Vars are the variables that a program needs beside its own; variable gives those of the daemon's environment, and dirs are
// those of its Launch.
func Vars(format string, variable func(string) string, dirs []string) map[string]string {
	if vars := profileOf(format).vars; vars != nil {
		return vars(variable, dirs)
	}
	return nil
}

// Former is the command by which a program was an agent of text, with its prompt as an argument, before it was built in; nil
// where it always was.
func Former(name string) []string { return profileOf(name).former }

// SchemaFile is the content of the file by which a program takes the schema of its answer; nil where it takes none, or not
// this one. mayNull is Strict's.
func SchemaFile(format string, schema json.RawMessage, mayNull bool) json.RawMessage {
	if !profileOf(format).strict {
		return nil
	}
	return Strict(schema, mayNull)
}

// KeepsFiles reports whether a program keeps each conversation in a file, which Transcript finds.
func KeepsFiles(format string) bool { return profileOf(format).kept != nil }

// Login is the file that has the login of a program, and the variables that stand for one. variable gives those of the
// environment; home is the person's. "" where nothing tells whether it is logged in.
func Login(format string, variable func(string) string, home string) (file string, keys []string) {
	p := profileOf(format)
	if p.login[1] == "" {
		return "", nil
	}
	dir := variable(p.login[0])
	if dir == "" {
		dir = filepath.Join(home, p.homes[p.login[0]])
	}
	return filepath.Join(dir, p.login[1]), p.keys
}
