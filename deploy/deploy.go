// Package deploy puts the daemon into the care of the machine's service manager and reports how it
// stands there: systemd on Linux, launchd on macOS. Elsewhere it refuses: no init script is ever
// written. It also has what the Debian package is made of.
//
// The units, the property list and the file of the environment are templates of our own: a word in
// @CAPITALS@ stands for a value, which goes in with the escapes of its place. kardianos/service
// finds out which manager there is and gives it its orders; a service's state is ours to read, as
// its own would call a crash loop running.
//
// Ended is the other half of a unit with KillMode=process: agents outlive the daemon at a crash and
// at a restart, and end with it when somebody wants the service stopped.
//
// Reading order: deploy.go (the files), service.go (install, start, stop), begin.go (what a
// person's install settles first), status.go (the manager's word), look.go (the daemon's),
// ended.go.
package deploy

import (
	_ "embed"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"sluice/internal/fault"
)

// Names and places of the service.
const (
	Name       = "sluice"                  // of the service, of the system's user, and the label on macOS
	Unit       = Name + ".service"         //
	SystemHome = "/var/lib/sluice"         // of the system's user
	SystemEnv  = "/etc/sluice/service.env" // the environment of the machine's service
	// SystemPath is where the machine's service looks for agents.
	SystemPath = SystemHome + "/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

//go:embed systemd/user.service
var userUnit string

//go:embed systemd/system.service
var systemUnit string

//go:embed launchd/sluice.plist
var plist string

// Values is what a template is filled with. Paths are absolute.
type Values struct {
	Program string   // the binary
	EnvFile string   // systemd: what is read before each start, where it is there
	Home    string   // of the user
	Env     []string // launchd, which reads no file: KEY=VALUE
	Logs    string   // launchd: the folder
	Made    bool     // what uninstalling takes back: a user's linger, the machine's user
	Package bool     // the unit is a package's
}

// UserUnit is the unit of a user's own service.
func UserUnit(v Values) (string, error) {
	if err := v.check(); err != nil {
		return "", err
	}
	return fill(userUnit, "PROGRAM", quote(v.Program), "ENVFILE", percent(v.EnvFile), "HOME", percent(v.Home),
		"LINGER", made(v.Made)), nil
}

// SystemUnit is the unit of the machine's service, which has a user of its own.
func SystemUnit(v Values) (string, error) {
	v.Home = SystemHome
	if err := v.check(); err != nil {
		return "", err
	}
	origin := "Written by `sluice service install --system`; a second install overwrites it."
	if v.Package {
		origin = "From the package sluice."
	}
	return fill(systemUnit, "ORIGIN", origin, "PROGRAM", quote(v.Program), "ENVFILE", percent(v.EnvFile), "USERMADE",
		made(v.Made)), nil
}

// Plist is the property list of a user's own service on macOS.
func Plist(v Values) (string, error) {
	if err := v.check(); err != nil {
		return "", err
	}
	var env strings.Builder
	for _, kv := range v.Env {
		key, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&env, "\t\t<key>%s</key>\n\t\t<string>%s</string>\n", escape(key), escape(value))
	}
	return fill(plist, "LABEL", escape(Name), "PROGRAM", escape(v.Program), "HOME", escape(v.Home), "ENV",
		env.String(), "LOGS", escape(v.Logs)), nil
}

func fill(template string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = "@" + pairs[i] + "@"
	}
	return strings.NewReplacer(pairs...).Replace(template) // in one go: a value that has @WORDS@ stays as it is
}

func made(yes bool) string {
	if yes {
		return "made"
	}
	return "found"
}

// ErrPath is wrapped by what is said of a path that cannot stand in a unit.
var ErrPath = fault.New("rename the folder, or install from another", "a service's file cannot contain it")

func (v Values) check() error {
	for _, p := range []string{v.Program, v.EnvFile, v.Home, v.Logs} {
		if !sound(p) || strings.TrimSpace(p) != p || strings.HasSuffix(p, `\`) {
			return fmt.Errorf("path %q: %w", p, ErrPath)
		}
	}
	return nil
}

// sound says that the text is whole and has no control characters: a line break in a unit would
// begin a line of its own.
func sound(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// percent doubles what systemd would take for a specifier. Paths that stand alone take no quotes: blanks are theirs.
func percent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// quote is a word of a command line in a unit.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(percent(s)) + `"`
}

func escape(s string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(s)) // into memory
	return out.String()
}

// envHead says what the file is.
const envHead = `# The environment of the service, read before each start. sluice service install updates the
# variables that it finds and keeps the others: add what your agents need, one line each.
`

// EnvFile is the file of the environment: what was found, over what the file had before; a variable
// that was not found now stays as it is, with the person's own lines. Values with line breaks are
// left out.
func EnvFile(before string, found map[string]string) string {
	var lines []string
	for line := range strings.Lines(before) {
		line = strings.TrimRight(line, "\n")
		key, _, is := strings.Cut(strings.TrimSpace(line), "=")
		if _, over := found[key]; is && over || slices.Contains(strings.Split(envHead, "\n"), line) {
			continue
		}
		lines = append(lines, line)
	}
	var out strings.Builder
	out.WriteString(envHead)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if value := found[key]; sound(value) {
			fmt.Fprintf(&out, "%s=\"%s\"\n", key,
				strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`", `$`, `\$`).Replace(value))
		}
	}
	for _, line := range lines {
		out.WriteString(line + "\n")
	}
	return out.String()
}

// once is what makes a unit run one command and end.
const once = `
[Service]
Type=oneshot
ExecStart=
ExecStart=@COMMAND@
ExecReload=
ExecStopPost=
Restart=no
WatchdogSec=0
TimeoutStartSec=120
KillMode=control-group
StandardOutput=truncate:@OUT@
StandardError=truncate:@OUT@.err
`

// Once is a unit that runs one command as the given unit would: its user, environment and limits,
// with all of its drop-ins. What the command says goes to the file out, its complaints to out.err.
func Once(unit string, command []string, out string) (string, error) {
	if err := (Values{Program: command[0], EnvFile: out}).check(); err != nil {
		return "", err
	}
	words := make([]string, len(command))
	for i, w := range command {
		if !sound(w) {
			return "", fmt.Errorf("argument %q: %w", w, ErrPath)
		}
		words[i] = quote(w)
	}
	return unit + fill(once, "COMMAND", ":"+strings.Join(words, " "), "OUT", percent(out)), nil
}
