//go:build linux

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice/tools/modelstub"
)

// What the first hour may cost a person.
const (
	mostCommands  = 6
	mostQuestions = 3
)

// newcomer types what docs/first-hour.md says, in a shell in a real terminal, and counts.
type newcomer struct {
	*playground
	win                 *terminalWindow
	page                string // what docs/first-hour.md has left to say
	commands, questions int
	waited              time.Duration
}

// hourTask is what the newcomer answers; it names the part of the model's play too.
const hourTask = "greet.sh NAME prints hello, NAME. STUB:hour"

// hourSettings shorten the one wait that is the same for everybody: it is 30 s.
const hourSettings = "notify: {desktop: false}\nveto_window: 5s\n"

// plainAgent plays every role as a command that costs nothing.
const plainAgent = `#!/bin/sh
cat >/dev/null
case "${SLUICE_GATE:-$SLUICE_STEP}" in
tests) echo 'test "$(sh greet.sh Ann)" = "hello, Ann"' >greet_test.sh ;;
code) echo 'echo "hello, $1"' >greet.sh ;;
*) echo '{"verdict": "pass", "feedback": "It tests the greeting."}' ;;
esac
`

// TestFirstHour goes the way of docs/first-hour.md from a clone to landed work, with its very commands, and counts the
// commands typed and the questions answered. A decision at a gate is one question, though a pass needs Enter besides.
func TestFirstHour(t *testing.T) {
	kinds := map[string]func(*testing.T, *playground) string{"command": commandAgent, "claude": realClaude}
	for name, agent := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, false)
			w.write("greet/Makefile", "test:\n\tsh greet_test.sh\n")
			agents := agent(t, w)
			h := &newcomer{playground: w}
			h.sitsDown(agents)
			h.firstHour()
			t.Logf("%s: %d commands, %d questions, %.0f s waited", name, h.commands, h.questions, h.waited.Seconds())
			if h.commands > mostCommands || h.questions > mostQuestions {
				t.Errorf("want at most %d commands and %d questions", mostCommands, mostQuestions)
			}
			for _, file := range []string{"greet.sh", "greet_test.sh"} {
				if out := w.git("show", "main:"+file); !strings.Contains(out, "hello") {
					t.Errorf("main has no %s: %s", file, out)
				}
			}
			if left, _, _ := strings.Cut(h.page, "\n## "); regexp.MustCompile(`(?m)^    \S`).MatchString(left) {
				t.Errorf("docs/first-hour.md has commands that were not typed:\n%s", left)
			}
		})
	}
}

// git runs git in the newcomer's own repo.
func (w *playground) git(args ...string) string {
	w.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", filepath.Join(w.dir, "greet")}, args...)...)
	cmd.Env = append(w.env, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %v: %v %s", args, err, out)
	}
	return string(out)
}

// commandAgent puts a command in claude's place, by the person's own settings.
func commandAgent(t *testing.T, w *playground) string {
	w.write("agents/claude", plainAgent)
	dir := filepath.Join(w.dir, "agents")
	if err := os.Chmod(filepath.Join(dir, "claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.own(hourSettings + "agents: {claude: {command: [claude], format: text, prompt_via: stdin}}\n")
	return dir
}

// realClaude has the real claude work, with a stub of its model.
func realClaude(t *testing.T, w *playground) string {
	bin := abs("../.cache/agents/node_modules/.bin/claude")
	if _, err := os.Stat(bin); err != nil {
		t.Skipf("needs: the npm package of claude (.ci/needs installs it): %v", err)
	}
	tree := filepath.Join(w.dir, "greet/.workflow/worktrees/gated-pipeline-1")
	writes := func(file, text string) []modelstub.Act {
		return []modelstub.Act{{Text: "I write.", Write: [2]string{filepath.Join(tree, file), text}}, {Text: "Wrote it."}}
	}
	stub := modelstub.New(map[string]modelstub.Part{"hour": {
		writes("greet_test.sh", "test \"$(sh greet.sh Ann)\" = \"hello, Ann\"\n"),
		judging("pass", "It tests the greeting."),
		writes("greet.sh", "echo \"hello, $1\"\n"),
	}})
	t.Cleanup(stub.Close)
	w.own(hourSettings)
	w.env = append(w.env, "ANTHROPIC_BASE_URL="+stub.URL, "ANTHROPIC_API_KEY=key", "IS_SANDBOX=1",
		"CLAUDE_CONFIG_DIR="+filepath.Join(w.dir, "claude"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_MAX_RETRIES=1")
	return claudeAlone(t, bin)
}

// claudeAlone is a folder with claude and no other agent.
func claudeAlone(t *testing.T, bin string) string {
	dir := t.TempDir()
	if err := os.Symlink(bin, filepath.Join(dir, "claude")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// goCopies is a go whose build is a copy of the binary of these tests: compiling is no part of the hour.
const goCopies = `#!/bin/sh
while [ "$1" != -o ]; do shift; done
mkdir -p "$(dirname "$2")" && cp "%s" "$2"
`

const hourGit = "[user]\nname = A Person\nemail = person@example.org\n[init]\ndefaultBranch = main\n[safe]\ndirectory = *\n"

// sitsDown opens a shell in a terminal. All of its `make install` but the build is the clone's.
func (h *newcomer) sitsDown(agents string) {
	h.t.Helper()
	page, err := os.ReadFile("../docs/first-hour.md")
	if err != nil {
		h.t.Fatal(err)
	}
	h.page = regexp.MustCompile("(?s)\n```.*?\n```\n").ReplaceAllString(string(page), "\n") // what commands print
	home := filepath.Dir(h.dir)
	h.write("go", fmt.Sprintf(goCopies, filepath.Join(binDir(h.t), "sluice")))
	if err := os.Chmod(filepath.Join(h.dir, "go"), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(hourGit), 0o600); err != nil {
		h.t.Fatal(err)
	}
	h.env = append(h.env, "GO="+filepath.Join(h.dir, "go"), "ENV="+filepath.Join(h.dir, "rc"))
	h.write("rc", "PS1='ready> ' PATH="+filepath.Join(home, ".local/bin")+":"+agents+":/usr/bin:/bin\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"commit", "-q", "-m", "start"}} {
		h.git(args...)
	}
	h.win = h.inTerminal(110, 40, "sh -i")
	h.win.sees(`^ready>$`)
}

// command types the page's next command, with ours for what it leaves open, and waits for what comes of it. To go to
// another folder is no command.
func (h *newcomer) command(line string, with map[string]string, until string) {
	h.t.Helper()
	next := regexp.MustCompile(`(?m)^    (\S.*)$`).FindStringSubmatchIndex(h.page)
	if next == nil {
		h.t.Fatalf("docs/first-hour.md does not say %q", line)
	}
	if said := h.page[next[2]:next[3]]; said != line {
		h.t.Fatalf("docs/first-hour.md says %q where %q is typed", said, line)
	}
	h.page = h.page[next[3]:]
	for open, ours := range with {
		line = strings.ReplaceAll(line, open, ours)
	}
	for part := range strings.SplitSeq(line, " && ") {
		if !strings.HasPrefix(part, "cd ") {
			h.commands++
		}
	}
	h.win.tmux("send-keys", "-l", "clear")
	h.win.sees(`^ready> clear$`) // an empty screen would look cleared before it is
	h.win.tmux("send-keys", "Enter")
	h.win.sees(`\Aready>\s*\z`)
	h.win.tmux("send-keys", "-l", line)
	began := time.Now()
	h.win.types("Enter")
	h.win.sees(until)
	h.waited += time.Since(began)
}

// answer answers a question.
func (h *newcomer) answer(until string, keys ...string) {
	h.t.Helper()
	h.questions++
	began := time.Now()
	h.win.types(keys...)
	h.win.sees(until)
	h.waited += time.Since(began)
}

// decides passes the gate on the screen: one question, as looking and Enter belong to the answer.
func (h *newcomer) decides(until string) {
	h.t.Helper()
	h.win.looks()
	h.answer(`^Pass `, "p")
	h.win.looks()
	h.questions--
	h.answer(until, "Enter")
}

func (h *newcomer) firstHour() {
	h.t.Helper()
	const ready = `(?s)\nready>\s*\z`
	h.command("git clone URL sluice && cd sluice", map[string]string{"URL": "-q " + abs("..")}, ready)
	h.command("make install", nil, `(?s)install -D.*`+ready)
	h.command("sluice demo", nil, `^p pass`)
	h.decides(`(?s)Go on.*` + ready)
	h.command("cd ~/greet", map[string]string{"~": h.dir}, ready)
	h.command("sluice init", nil, `(?s)sluice run gated-pipeline.*`+ready)
	h.command("sluice run", nil, `^task \(what is to be built, in a sentence or more\):`)
	h.answer(`(?s)approve.*^p pass`, hourTask, "Enter")
	h.decides(`(?s)gated-pipeline-1 completed.*` + ready)
	h.command("sluice land last", nil, `gated-pipeline-1 landed on main`)
}
