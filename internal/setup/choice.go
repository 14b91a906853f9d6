package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sluice/agents"
	"sluice/agents/program"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/internal/text"
)

// Choice is what a first workflow goes by: who works, who reviews, and what tests the work.
type Choice struct {
	Writer   string   `json:"writer"`
	Reviewer string   `json:"reviewer"`
	Test     string   `json:"test"`
	Found    []string `json:"found"` // agents on PATH

	Given [3]bool `json:"-"` // writer, reviewer and test: by a flag, so it is not asked for

	moot [3]bool // the template has no place for it
}

// For finds what a template has no place for: a reviewer, a command of tests.
func (c *Choice) For(files fs.FS) error {
	c.moot = [3]bool{false, true, true}
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if name == "config.yaml" {
			for _, m := range regexp.MustCompile(roleLine).FindAllStringSubmatch(string(data), -1) {
				c.moot[1] = c.moot[1] && !reviews(m[2])
			}
		}
		c.moot[2] = c.moot[2] && !(strings.HasPrefix(name, "specs/") && regexp.MustCompile(testLine).Match(data))
		return nil
	})
}

// reviews reports whether the chosen reviewer plays the role.
func reviews(role string) bool {
	return role == "reviewer" || role == "review" || role == "controller" || role == "supervisor" || role == "tester"
}

// knownAgents are looked for on PATH: the built-in ones first, then those whose settings docs/agents.md has.
func knownAgents() []string { return append(program.Names(), "qwen", "gemini") }

// agentSettings returns the tested settings of an agent that is not built in, and the variables that it needs.
func agentSettings(name string) (set, env string) {
	switch name {
	case "qwen":
		return `command: [qwen, --auth-type, openai, --yolo], prompt_via: stdin`, `["OPENAI_*"]`
	case "gemini":
		return `command: [gemini, -m, gemini-2.5-flash, --yolo], prompt_via: stdin`, `["GEMINI_*", "GOOGLE_*"]`
	}
	return "", ""
}

// Choose fills in what no flag said: by what is found in the repo and on PATH, and by at most three questions where
// there is somebody to ask. Where only one agent is found, it asks for none; where a test command is, not for that.
func (c *Choice) Choose(con *console.Console, root string) error {
	for _, name := range knownAgents() {
		if _, err := agents.LookUp(name, con.Env, root); err == nil {
			c.Found = append(c.Found, name)
		}
	}
	for i, name := range []string{c.Writer, c.Reviewer} {
		if c.Given[i] && !slices.Contains(knownAgents(), name) {
			advice := "use one of " + strings.Join(knownAgents(), ", ") + ", and change " + layout.WorkflowDir +
				"/config.yaml then"
			if near := text.Meant(name, knownAgents()); near != "" {
				advice = "did you mean " + near + "?"
			}
			return fault.Misused(advice, "sluice has no settings for an agent %q", text.Line(name))
		}
	}
	ask := con.Asks()
	writer := "claude"
	if len(c.Found) > 0 {
		writer = c.Found[0]
	}
	var err error
	if !c.Given[0] {
		if c.Writer = writer; ask && len(c.Found) > 1 {
			if c.Writer, err = pick(con, "Which agent does the work?", c.Found, writer); err != nil {
				return err
			}
		}
	}
	if !c.Given[1] {
		c.Reviewer = c.Writer
		for _, other := range c.Found { // another model sees other faults
			if other != c.Writer {
				c.Reviewer = other
				break
			}
		}
		if ask && len(c.Found) > 1 && !c.moot[1] {
			if c.Reviewer, err = pick(con, "Which agent reviews it?", c.Found, c.Reviewer); err != nil {
				return err
			}
		}
	}
	if !c.Given[2] && !c.moot[2] {
		if c.Test = testsOf(root); c.Test == "" && ask {
			c.Test, err = fill(con, "Which command tests this repo?", c.Test)
		}
	}
	return err
}

// pick asks for one of the names; an empty line takes the usual one.
func pick(con *console.Console, question string, names []string, usual string) (string, error) {
	for {
		got, err := fill(con, question+" "+strings.Join(names, ", "), usual)
		if err != nil || slices.Contains(names, got) {
			return got, err
		}
		advice := "type one of them"
		if near := text.Meant(got, names); near != "" {
			advice = "did you mean " + near + "?"
		}
		con.Print("  %s", con.Paint(console.Yellow, fmt.Sprintf("no agent %q here: %s", text.Line(got), advice)))
	}
}

// fill asks for a line; an empty one is the usual answer.
func fill(con *console.Console, question, usual string) (string, error) {
	if usual != "" {
		question += " [" + usual + "]"
	}
	fmt.Fprintf(con.Out, "%s ", question)
	line, err := con.ReadLine()
	if errors.Is(err, context.Canceled) {
		return "", err
	}
	if err != nil {
		return "", fault.Failed("give the answers with --writer, --reviewer and --test",
			"nothing was created: the question was not answered")
	}
	if line = strings.TrimSpace(line); line == "" {
		return usual, nil
	}
	return line, nil
}

// testsOf guesses which command runs the repo's tests; "" if it finds none.
func testsOf(root string) string {
	has := func(name string) bool {
		info, err := os.Stat(filepath.Join(root, name))
		return err == nil && info.Mode().IsRegular()
	}
	read := func(name string) string {
		data, _, err := atomicfile.OpenRegular(root, name, maxProjectFile)
		if err != nil {
			return ""
		}
		return string(data)
	}
	for _, name := range []string{"Makefile", "makefile", "GNUmakefile"} {
		if regexp.MustCompile(`(?m)^test\s*:`).MatchString(read(name)) {
			return "make test"
		}
	}
	var p struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal([]byte(read("package.json")), &p) == nil && p.Scripts["test"] != "" &&
		!strings.Contains(p.Scripts["test"], "no test specified") {
		return "npm test"
	}
	for _, by := range []struct{ file, command string }{
		{"go.mod", "go test ./..."}, {"Cargo.toml", "cargo test"}, {"pytest.ini", "pytest"}, {"pyproject.toml", "pytest"},
		{"setup.py", "pytest"},
		{"mix.exs", "mix test"}, {"gradlew", "./gradlew test"}, {"pom.xml", "mvn -q test"},
		{"Gemfile", "bundle exec rake test"}, {"deno.json", "deno test"},
	} {
		if has(by.file) {
			return by.command
		}
	}
	return ""
}

// maxProjectFile bounds a file of the project that is read.
const maxProjectFile = 1 << 20

// Places of a template's files that a choice fills in.
const (
	roleLine = `(?m)^(  )([\w-]+)(: \{agent: )claude(\})`
	testLine = `(?m)^(    test: \{default: )"true"`
)

// fit returns a template's file with the choice filled in.
func (c *Choice) fit(name string, data []byte) []byte {
	switch {
	case name == "config.yaml":
		var own []string
		roleLine := regexp.MustCompile(roleLine)
		out := roleLine.ReplaceAllStringFunc(string(data), func(line string) string {
			m := roleLine.FindStringSubmatch(line)
			who := c.Writer
			if reviews(m[2]) {
				who = c.Reviewer
			}
			set, _ := agentSettings(who)
			if line := "  " + who + ": {" + set + "}"; set != "" && !slices.Contains(own, line) {
				own = append(own, line)
			}
			return m[1] + m[2] + m[3] + who + m[4]
		})
		if len(own) > 0 {
			out += "agents:\n" + strings.Join(own, "\n") +
				"\nidle_timeout: 10m   # some hang where their service does not answer\n"
		}
		return []byte(out)
	case strings.HasPrefix(name, "specs/") && c.Test != "":
		return regexp.MustCompile(testLine).ReplaceAll(data,
			[]byte("${1}"+strings.ReplaceAll(strconv.Quote(c.Test), "$", "$$")))
	}
	return data
}

// Notes prints what is missing for the choice to work; trial is the command of a run that needs no agent.
func (c *Choice) Notes(con *console.Console, root, trial string) {
	if len(c.Found) == 0 {
		con.Print("%s no agent on PATH (looked for %s): install one, or name any command in %s/config.yaml; `sluice %s` "+
			"tries the workflow with stubs",
			con.Paint(console.Yellow, "note:"), strings.Join(knownAgents(), ", "), layout.WorkflowDir, trial)
	}
	for _, who := range slices.Compact([]string{c.Writer, c.Reviewer}) {
		if set, env := agentSettings(who); set != "" {
			con.Print("%s a repo's settings cannot pass your variables to an agent. For its key, add this to your own file "+
				"(~/.config/sluice/config.yaml):\n  agents: {%s: {%s, env: %s}}",
				con.Paint(console.Yellow, "note:"), who, set, env)
		}
	}
	if by, _, _ := strings.Cut(c.Test, " "); by != "" && !c.moot[2] {
		if _, err := agents.LookUp(by, con.Env, root); err != nil {
			con.Print("%s `%s` is to test this repo, and there is no %s to run: install it, or change `test` in the spec",
				con.Paint(console.Yellow, "note:"), text.Line(c.Test), text.Line(by))
		}
	}
	if c.Test != "" && !c.Given[2] && !c.moot[2] {
		con.Print("%s `%s` tests the work: change `test` in the spec if another command does",
			con.Paint(console.Yellow, "note:"), text.Line(c.Test))
	}
	if c.Test == "" && !c.moot[2] {
		con.Print("%s no tests were found here: its reviewer and you judge the work until the spec's `test` "+
			"names a command", con.Paint(console.Yellow, "note:"))
	}
}
