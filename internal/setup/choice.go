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
			return fault.Misused(text.MeantOr(advice, "", name, knownAgents()),
				"sluice has no settings for an agent %q", text.Line(name))
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
		err = c.chooseTest(con, root)
	}
	return err
}

// chooseTest takes the likeliest command of tests whose program is there. It asks if there is none.
func (c *Choice) chooseTest(con *console.Console, root string) (err error) {
	likely := testsOf(root)
	for _, command := range likely {
		if missing(con, root, command) == "" {
			c.Test = command
			return nil
		}
	}
	if len(likely) > 0 {
		c.Test = likely[0]
	}
	if !con.Asks() {
		return nil
	}
	if c.Test != "" {
		con.Marked("note:", notThere(con, root, c.Test))
	}
	c.Test, err = fill(con, "Which command tests this repo?", c.Test)
	return err
}

// missing returns the program of a command if it is not there; "" if it is.
func missing(con *console.Console, root, command string) string {
	by, _, _ := strings.Cut(command, " ")
	if _, err := agents.LookUp(by, con.Env, root); err == nil {
		return ""
	}
	return by
}

func notThere(con *console.Console, root, command string) string {
	return fmt.Sprintf("`%s` is to test this repo, and there is no %s to run: install it, or name another command",
		text.Line(command), text.Line(missing(con, root, command)))
}

// pick asks for one of the names; an empty line takes the usual one.
func pick(con *console.Console, question string, names []string, usual string) (string, error) {
	for {
		got, err := fill(con, question+" "+strings.Join(names, ", "), usual)
		if err != nil || slices.Contains(names, got) {
			return got, err
		}
		advice := text.MeantOr("type one of them", "", got, names)
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

// testsOf guesses which commands run the repo's tests, the likeliest first.
func testsOf(root string) (likely []string) {
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
			likely = append(likely, "make test")
			break
		}
	}
	var p struct {
		Scripts map[string]string `json:"scripts"`
	}
	if json.Unmarshal([]byte(read("package.json")), &p) == nil && p.Scripts["test"] != "" &&
		!strings.Contains(p.Scripts["test"], "no test specified") {
		likely = append(likely, "npm test")
	}
	for _, by := range []struct{ file, command string }{
		{"go.mod", "go test ./..."}, {"Cargo.toml", "cargo test"}, {"pytest.ini", "pytest"}, {"pyproject.toml", "pytest"},
		{"setup.py", "pytest"}, {"uv.lock", "uv run pytest"}, {"poetry.lock", "poetry run pytest"},
		{"mix.exs", "mix test"}, {"gradlew", "./gradlew test"}, {"pom.xml", "mvn -q test"},
		{"Gemfile", "bundle exec rake test"}, {"deno.json", "deno test"},
	} {
		if has(by.file) {
			likely = append(likely, by.command)
		}
	}
	for _, by := range []string{"test_*.py", "tests/test_*.py"} {
		files, _ := fs.Glob(os.DirFS(root), by) // the pattern is right
		switch {
		case len(files) == 0 || slices.ContainsFunc(likely, func(c string) bool { return strings.HasSuffix(c, "pytest") }):
		case !strings.Contains(by, "/") && strings.Contains(read(files[0]), "unittest"):
			likely = append(likely, "python3 -m unittest") // an older Python passes where it finds no such test
		default:
			likely = append(likely, "pytest")
		}
	}
	return likely
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

// Roles prints which of the agents that were found does what.
func (c *Choice) Roles(con *console.Console) {
	if !slices.Contains(c.Found, c.Writer) {
		return
	}
	does := c.Writer + " does the work"
	switch {
	case c.moot[1]:
	case c.Reviewer == c.Writer:
		does += " and reviews it"
	default:
		does += ", " + c.Reviewer + " reviews it"
	}
	con.Print("%s %s on PATH: %s", con.Paint(console.Green, "found"), strings.Join(c.Found, ", "), does)
}

// Notes prints what is missing for the choice to work; trial is the command of a run that needs no agent.
func (c *Choice) Notes(con *console.Console, root, trial string) {
	note := func(format string, args ...any) { con.Marked("note:", fmt.Sprintf(format, args...)) }
	if len(c.Found) == 0 {
		note("no agent on PATH (looked for %s): install one, or name any command in %s/config.yaml; `sluice %s` "+
			"tries the workflow with stubs", strings.Join(knownAgents(), ", "), layout.WorkflowDir, trial)
	}
	for _, who := range slices.Compact([]string{c.Writer, c.Reviewer}) {
		if set, env := agentSettings(who); set != "" {
			note("a repo's settings cannot pass your variables to an agent. For its key, add this to your own file " +
				"(~/.config/sluice/config.yaml):")
			con.Print("  agents: {%s: {%s, env: %s}}", who, set, env)
		}
	}
	switch {
	case c.moot[2]:
	case c.Test == "":
		note("no tests were found here: its reviewer and you judge the work until the spec's `test` names a command")
	case missing(con, root, c.Test) != "":
		note("%s as `test` in the spec", notThere(con, root, c.Test))
	case !c.Given[2]:
		note("`%s` tests the work: change `test` in the spec if another command does", text.Line(c.Test))
	}
}
