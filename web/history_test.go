package web

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/render"
	"sluice/internal/workspace"
)

// TestHistoryWaits: the history says how long a run waited for people.
func TestHistoryWaits(t *testing.T) {
	p := newSite(t)
	run := p.run(asksSpec)
	at := "/r/shop/" + run + "/g/G"
	form := p.form(at)
	form.Set("sure", "yes")
	if w := p.answer(at, form, "outcome", "pass"); w.Code != http.StatusSeeOther {
		t.Fatalf("pass: %d %s", w.Code, w.Body)
	}
	ended := p.until(run, "the end", func(r daemon.RunStatus) bool { return !r.Live() })
	var waited time.Duration
	for _, g := range ended.Gates() {
		waited += time.Duration(g.Waited)
	}
	if took := ended.Ended.Sub(ended.Started); waited <= 0 || waited > took {
		t.Errorf("it waited %v of %v", waited, took)
	}
	want := "</meter> " + render.Ago(waited) + "</td><td data-is=\"rounds\">"
	if got := p.ask("GET", "/history", nil).Body.String(); !strings.Contains(got, want) {
		t.Errorf("there is no %s:\n%s", want, got)
	}
}

// TestStartShowsPictures: each workflow that can be started is shown with its picture.
func TestStartShowsPictures(t *testing.T) {
	got := newSite(t).ask("GET", "/start", nil).Body.String()
	if !strings.Contains(got, `<g id="shop-w-n-G" class="node gate ahead">`) {
		t.Errorf("no picture of w:\n%s", got)
	}
}

// TestRunSaysWhetherItHasLanded: the page of a run says what the command says of its work: nothing of a trial run or of
// one that changed nothing, how to take it, and where it has landed.
func TestRunSaysWhetherItHasLanded(t *testing.T) {
	p := newSite(t)
	spec := strings.Replace(asksSpec, "name: A workflow", "name: A workflow, workspace: run", 1)
	run := p.run(spec)
	at := "/r/shop/" + run
	form := p.form(at + "/g/G")
	form.Set("sure", "yes")
	if w := p.answer(at+"/g/G", form, "outcome", "pass"); w.Code != http.StatusSeeOther {
		t.Fatalf("pass: %d %s", w.Code, w.Body)
	}
	ended := p.until(run, "the end", func(r daemon.RunStatus) bool { return !r.Live() })
	says := func(want string) {
		t.Helper()
		got := p.ask("GET", at, nil).Body.String()
		if want == "" && strings.Contains(got, "sluice land") || !strings.Contains(got, want) {
			t.Errorf("no %q:\n%s", want, got)
		}
	}
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", p.root, "-c", "user.name=x", "-c", "user.email=x@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	base := git("rev-parse", "HEAD")
	git("branch", "-M", "main")
	git("update-ref", "refs/sluice/base/"+run, base)
	git("update-ref", "refs/heads/"+ended.Branch, git("commit-tree", "-p", base, "-m", "nothing", "HEAD^{tree}"))
	says("")
	git("checkout", "-q", ended.Branch)
	p.put("made", "x\n")
	git("add", "made")
	git("commit", "-q", "-m", "made")
	git("checkout", "-q", "main")
	says("<p>to take it: sluice land " + run + " (1 file on branch " + ended.Branch + ")</p>")
	objects := filepath.Join(p.root, ".git", "objects")
	for _, move := range [][2]string{{objects, objects + ".away"}, {objects + ".away", objects}} {
		if err := errors.Join(os.RemoveAll(move[1]), os.Rename(move[0], move[1]), os.MkdirAll(objects, 0o755)); err != nil {
			t.Fatal(err)
		}
		says("<p>to take it: sluice land " + run) // without asking git, which knows no commit just now
	}
	git("merge", "-q", "--squash", ended.Branch)
	git("commit", "-q", "-m", "landed")
	git("update-ref", "refs/sluice/landed/"+run, "HEAD")
	says("<p>landed on main as " + git("rev-parse", "HEAD")[:12] + "</p>")
}

// TestWhatWentOnWithoutAPass: a run that is completed though a gate did not pass says so wherever it is shown, and what it
// was given. The attempt that ended another has failed.
func TestWhatWentOnWithoutAPass(t *testing.T) {
	p := newSite(t)
	shows := func(at string, want ...string) {
		t.Helper()
		page := p.ask("GET", at, nil).Body.String()
		for _, s := range want {
			if !strings.Contains(page, s) {
				t.Errorf("%s: no %q:\n%s", at, s, page)
			}
		}
	}
	ends := func(spec string, vars map[string]any) string {
		t.Helper()
		d, err := p.client.Do(t.Context(), engine.RunRequested{Source: spec, Vars: vars, Parallel: true}, "")
		if err != nil || d.Run == "" {
			t.Fatal(d, err)
		}
		p.until(d.Run, "the end", func(r daemon.RunStatus) bool { return !r.Live() })
		return d.Run
	}
	p.world.judge = engine.Judgement{Outcome: engine.OutcomeFail, Feedback: "no"}
	on := ends("workflow: {id: on, vars: {goal: {required: true}}}\nsteps:\n  - {id: A, run: make, gate: R}\ngates:\n"+
		"  - {id: R, reviewer: {level: auto, agent_type: r}, on_pass: {next_step: DONE}, max_failures: 1, on_exhausted: pass}\n",
		map[string]any{"goal": "a <faster> search"})
	shows("/r/shop/"+on, "1 not passed", `<p class="warn">not passed, but went on: R: on_exhausted after 1 failure → DONE</p>`,
		"passed by on_exhausted · round 1", "goal:</span> a &lt;faster&gt; search")
	shows("/", "1 not passed")
	shows("/history", "1 not passed")
	p.world.check = engine.CheckResult{Why: "no output"}
	failed := ends("workflow: {id: off}\nsteps:\n  - {id: A, run: make, outputs: [x], next_step: DONE}\n", nil)
	shows("/r/shop/"+failed+"/a/A.1", `<span class="tag no">failed</span>`)
	shows("/r/shop/"+failed, `aria-label="attempt 1, failed"`)
}

// TestNoFormWithoutTheDaemon: a workflow of a repo that is not served cannot be started, so its page has no form.
func TestNoFormWithoutTheDaemon(t *testing.T) {
	p := newSite(t)
	if got := p.ask("GET", "/start/shop/w", nil).Body.String(); !strings.Contains(got, `action="/start/shop/w"`) {
		t.Errorf("no form where the repo is served:\n%s", got)
	}
	other := filepath.Join(filepath.Dir(p.root), "other")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", other).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	p.put("../other/.workflow/specs/w.yaml", asksSpec)
	at, err := workspace.At(t.Context(), p.con, other)
	if err == nil {
		err = os.MkdirAll(at.State, 0o700)
	}
	if err == nil {
		err = workspace.LeaveRoot(other, at.State)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.later(knownFor)
	got := p.ask("GET", "/start/other/w", nil).Body.String()
	if strings.Contains(got, `action="/start/other/w"`) || !strings.Contains(got, "run <code>sluice watch add</code> in it") {
		t.Errorf("a form where nothing can be started:\n%s", got)
	}
}
