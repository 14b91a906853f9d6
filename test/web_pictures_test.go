//go:build linux

package test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"sluice/internal/setup"
)

const picturedSpec = `workflow:
  id: search
  workspace: run
  vars: {goal: {required: true, description: what is to be found}}
steps:
  - {id: tests, agent: {type: tester, prompt: "Write tests for Search: ${{vars.goal}}."}, outputs: [search_test.go], gate: review}
  - {id: code, agent: {type: coder, prompt: "Make the tests pass: ${{vars.goal}}."}, success_criterion: go test ./... exits 0, gate: approve}
gates:
  - {id: review, reviewer: {level: auto, agent_type: reviewer}, on_pass: {next_step: code}, on_fail: {next_step: tests}}
  - {id: approve, name: the work is done, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: code}}
`

// picturedAgent plays claude: it writes what the step asks for, and says what that cost.
const picturedAgent = `prompt=$(cat) verdict=
case $SLUICE_ROLE in
tester) cat >search_test.go <<END
package notes

import "testing"

func TestSearch(t *testing.T) {
	if got := Search([]Note{{Title: "Tea"}, {Body: "green tea"}}, "tea"); len(got) != 2 {
		t.Error(got)
	}
}
END
	case $prompt in *"one day"*) exec sleep 600 ;; esac ;;
coder) sed -i -e 's|their title\.|their title or body, in any case. An empty query\n// finds none.|' \
	-e 's|^\tvar found|\tquery = strings.ToLower(strings.TrimSpace(query))\n\tif query == "" {\n\t\treturn nil\n\t}\n\tvar found|' \
	-e 's|strings.Contains(n.Title, query)|strings.Contains(strings.ToLower(n.Title+n.Body), query)|' search.go ;;
*) verdict=',"structured_output":{"verdict":"pass"}' ;;
esac
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done.","total_cost_usd":0.19,"usage":{"input_tokens":9100,"output_tokens":210}'$verdict'}'
`

const picturedCode = `package notes

import "strings"

// Note is a note.
type Note struct {
	Title string
	Body  string
}

// Search returns the notes that have the query in their title.
func Search(notes []Note, query string) []Note {
	var found []Note
	for _, n := range notes {
		if strings.Contains(n.Title, query) {
			found = append(found, n)
		}
	}
	return found
}
`

// TestPagePictures draws the pictures of docs/page.md.
func TestPagePictures(t *testing.T) {
	if !*redraw {
		t.Skip("draws the pictures of docs/page.md: -redraw")
	}
	w := newWorld(t, false)
	w.dir = filepath.Join(filepath.Dir(w.dir), "notes")
	w.write("search.go", picturedCode)
	w.write("go.mod", "module notes\n\ngo 1.26\n")
	w.write(".workflow/specs/search.yaml", picturedSpec)
	w.write(".workflow/.gitignore", setup.Ignored)
	w.write("../tools/agent.sh", picturedAgent)
	w.env = slices.DeleteFunc(w.env, func(v string) bool { return strings.HasPrefix(v, "SLUICE_CONFIG_SANDBOX_MODE=") })
	tools := filepath.Join(filepath.Dir(w.dir), "tools")
	w.own("notify: {desktop: false}\nsandbox: {mode: on, read: [" + tools + "]}\nroles: {\"*\": {agent: scripted, network: none}}\n" +
		"agents:\n  scripted: {command: [sh, " + filepath.Join(tools, "agent.sh") + "], format: claude}\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-q", "-m", "x"}} {
		if out, err := exec.Command("git", append([]string{"-C", w.dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git: %v %s", err, out)
		}
	}
	w.env = append(w.env, "SLUICE_CONFIG_WEB_LISTEN=127.0.0.1:"+freePort(t))
	sluice := filepath.Join(binDir(t), "sluice")
	defer w.serve(sluice)()
	w.start(sluice, "search", "--var", "goal=titles and bodies")
	approves := func(run string) { // go compiles its library first
		eventually(t, run+" asks", func() bool { return strings.Contains(second(w.sluice("status", run)), "approve for a person") })
	}
	approves("search-1")
	if code, out := w.binary(sluice, "pass", "approve", "--run", "search-1", "--yes"); code != 0 {
		t.Fatal(out)
	}
	w.until("completed", "status", "search-1")
	w.start(sluice, "search", "--var", "goal=titles and bodies")
	approves("search-2")
	w.start(sluice, "search", "--parallel", "--var", "goal=one day ordered by use")
	w.until("for its agent", "status", "search-3")
	b := w.login()
	pictured := func(name string, width, height int64, scheme string) {
		t.Helper()
		b.view(width, scheme)
		b.do(chromedp.EmulateViewport(width, height))
		b.looks()
		ctx, cancel := context.WithTimeout(b.ctx, waitMost)
		defer cancel()
		png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err = errors.Join(err, os.WriteFile("../docs/page-"+name+".png", png, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	b.sees("the work is done")
	pictured("inbox", 1280, 720, "light")
	b.open("/r/notes/search-2/g/approve")
	b.sees("What you decide on")
	pictured("phone", 360, 720, "light")
	b.view(1280, "dark")
	row := b.is(`[...document.querySelectorAll("tr.a")].find((r) => r.innerText.includes("n.Body")).id`)
	b.click("#" + row + " .n a")
	b.types("#c-"+row+" textarea", `Title and body run together: "ab" matches a title that ends in a and a body that begins with b.`)
	b.is(`scrollTo(0, 0)`)
	pictured("gate", 1280, 1110, "dark")
}

func second(_ int, out, _ string) string { return out }
