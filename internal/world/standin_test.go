//go:build linux || darwin

package world

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/engine"
	"sluice/internal/health"
	"sluice/internal/job"
	"sluice/internal/settings"
	"sluice/internal/stub"
	"sluice/tools/conform"
)

const standInSpec = `
workflow: {id: w}
steps:
  - id: A
    agent: {type: writer, prompt: x}
    outputs: [out.txt, data.json, ".workflow/runs/${{run}}/files/note.md"]
    answer: {type: object, required: [title], properties: {title: {type: string}}}
    success_criterion: [{file: more.txt, non_empty: true}]
    signal: {type: git_commit}
    gate: G
gates:
  - id: G
    reviewer: {level: auto, agent_type: critic, rubric: [security, docs]}
    verdict: {pass: score >= 70, revise: true}
    on_pass: {next_step: DONE}
`

// part returns what a launch's stand-in is told.
func (b *bench) part(rel string) stub.Part {
	b.t.Helper()
	var p stub.Part
	if err := json.Unmarshal([]byte(b.get(rel+"/"+stub.PartFile)), &p); err != nil {
		b.t.Fatal(err)
	}
	if p.Answer != nil {
		var one bytes.Buffer
		if err := json.Compact(&one, p.Answer); err != nil {
			b.t.Fatal(err)
		}
		p.Answer = one.Bytes()
	}
	return p
}

// TestStandInGetsNoKeys: a stand-in has nothing of what the role's agents get of models, keys and network.
func TestStandInGetsNoKeys(t *testing.T) {
	b := newBench(t, standInSpec)
	b.settings.Roles["writer"] = settings.Role{Agent: []string{"claude"}, Model: "dear", Env: []string{"SECRET", "MY_*"}, Network: []string{settings.NetworkHost}}
	b.e = b.executor(func(o *Options) { o.Self = "/sluice" })
	j := b.stepJob("A", 1, 1)
	j.RunInfo.Stubs = []byte(`{}`)
	st := b.spec.Step("A")
	w, err := b.e.StepPlayer(j, st, b.root, ".workflow/runs/w-1/A.1", 0)
	if err != nil || !w.Stub || w.Set.Model != "" || !slices.Equal(w.Set.Network, []string{settings.NetworkNone}) {
		t.Fatalf("%+v %v", w, err)
	}
	env, err := b.e.Environ(j, w, j.Key, nil, nil)
	if all := strings.Join(env, "\n"); err != nil || strings.Contains(all, "SECRET") || strings.Contains(all, "MY_KEY") || !strings.Contains(all, "SLUICE_ROLE=writer") {
		t.Errorf("%s %v", all, err)
	}
	if _, err := b.executor(func(o *Options) { o.Self = "" }).StepPlayer(j, st, b.root, ".workflow/runs/w-1/A.1", 0); err == nil {
		t.Error("a stand-in without a program")
	}
	j.RunInfo.Stubs = nil
	if w, err := b.e.StepPlayer(j, st, b.root, ".workflow/runs/w-1/A.1", 0); err != nil || w.Stub || w.Name != "claude" {
		t.Errorf("a real run: %+v %v", w, err)
	}
}

// TestStandInParts: without a script a stand-in does the least that lets work go on; with one, that.
func TestStandInParts(t *testing.T) {
	b := newBench(t, standInSpec)
	b.e = b.executor(func(o *Options) { o.Self = "/sluice" })
	rel := ".workflow/runs/w-1/A.1"
	play := func(script string, n, try int) stub.Part {
		t.Helper()
		j := b.stepJob("A", n, 1)
		j.RunInfo.Stubs = []byte(script)
		if _, err := b.e.StepPlayer(j, b.spec.Step("A"), b.root, rel, try); err != nil {
			t.Fatal(err)
		}
		return b.part(rel)
	}
	p := play(`{}`, 1, 0)
	var names []string
	for _, f := range p.Write {
		if !f.New {
			t.Errorf("%s would be written over", f.Path)
		}
		names = append(names, strings.TrimPrefix(f.Path, b.root+"/")+"="+strings.TrimSpace(f.Text))
	}
	label := "stub for writer: step A, attempt 1"
	if got, want := strings.Join(names, "\n"), ".workflow/runs/w-1/files/note.md="+label+"\ndata.json={}\nmore.txt="+label+"\nout.txt="+label; got != want {
		t.Errorf("writes\n%s\nwant\n%s", got, want)
	}
	if string(p.Answer) != `{"title":"stub"}` || p.Commit != label+"\n\n[GATE:G]" || p.Signal != "done" {
		t.Errorf("%+v", p)
	}
	script := `{"steps":{"A":[{"write":{"out.txt":null,"x/y.txt":"t"},"say":"no","then":[{"answer":{"title":"two"}}]},{"signal":"failed"}]}}`
	if p = play(script, 1, 0); len(p.Write) != 4 || p.Say != "no" || p.Answer != nil {
		t.Errorf("%+v", p)
	}
	if p = play(script, 1, 1); string(p.Answer) != `{"title":"two"}` {
		t.Errorf("%+v", p)
	}
	if p = play(script, 2, 0); len(p.Write) != 0 || p.Commit != "" || p.Signal != "failed" {
		t.Errorf("one that failed made its outputs: %+v", p)
	}
	j := b.stepJob("A", 1, 1)
	j.RunInfo.Stubs = []byte(`{"steps":{"A":[{"write":{".git/../../x":"t"}}]}}`)
	if _, err := b.e.StepPlayer(j, b.spec.Step("A"), b.root, rel, 0); err == nil {
		t.Error("it writes outside the repo")
	}
}

// TestStandInSaysItIsNotDone: a stand-in whose step has an answer says failed and blocked all the same, in the way in which an
// agent could.
func TestStandInSaysItIsNotDone(t *testing.T) {
	const open, closed = `{type: object, required: [title], properties: {title: {type: string}}}`, `{type: object, additionalProperties: false, properties: {title: {type: string}}}`
	const room = `{type: object, additionalProperties: false, required: [status], properties: {status: {enum: [done, failed, blocked]}, question: {type: string}}}`
	for _, c := range []struct{ signal, schema, play, answer, file string }{ // answer "" = none, and its exit code says it
		{"stdout_exit", open, `{"signal":"failed","summary":"s"}`, `{"status":"failed","summary":"s","title":"stub"}`, ""},
		{"stdout_exit", open, `{"signal":"blocked","question":"q","summary":"s"}`, `{"question":"q","status":"blocked","summary":"s","title":"stub"}`, ""},
		{"stdout_exit", open, `{"signal":"blocked","question":"q","summary":"s","answer":{"title":"mine"}}`, `{"question":"q","status":"blocked","summary":"s","title":"mine"}`, ""},
		{"stdout_exit", open, `{"signal":"failed","summary":"s","say":"no"}`, `{"status":"failed","summary":"s","title":"stub"}`, ""},
		{"stdout_exit", room, `{"signal":"blocked","question":"q"}`, `{"question":"q","status":"blocked"}`, ""},
		{"git_commit", "", `{"signal":"failed","summary":"s"}`, `{"status":"failed","summary":"s"}`, ""},
		{"git_commit", "", `{"signal":"blocked","question":"q","summary":"s"}`, `{"question":"q","status":"blocked","summary":"s"}`, ""},
		{"pr_creation", "", `{"signal":"blocked","question":"q","summary":"s"}`, `{"question":"q","status":"blocked","summary":"s"}`, ""},
		{"git_commit", open, `{"signal":"blocked","question":"q","summary":"s"}`, `{"question":"q","status":"blocked","summary":"s","title":"stub"}`, ""},
		{"git_commit", open, `{}`, `{"title":"stub"}`, ""},
		{"stdout_exit", closed, `{"signal":"failed"}`, "", ""},
		{"stdout_exit", closed, `{"signal":"blocked","question":"q"}`, "", ""},
		{"stdout_exit", open, `{"signal":"none"}`, `{"title":"stub"}`, ""},
		{"stdout_exit", open, `{}`, `{"title":"stub"}`, ""},
		{"sentinel_file", open, `{"signal":"failed"}`, "-", "failed"},
		{"sentinel_file", open, `{"signal":"blocked","answer":{"title":"mine"}}`, `{"title":"mine"}`, "blocked"},
		{"sentinel_file", open, `{}`, `{"title":"stub"}`, "done"},
	} {
		t.Run(c.signal+c.play, func(t *testing.T) {
			answer := ""
			if c.schema != "" {
				answer = ", answer: " + c.schema
			}
			b := newBench(t, "workflow: {id: w}\nsteps:\n  - {id: A, agent: {type: writer, prompt: x}, signal: {type: "+c.signal+"}"+answer+", next_step: DONE}\n")
			b.e = b.executor(func(o *Options) { o.Self = "/sluice" })
			j := b.stepJob("A", 1, 1)
			j.RunInfo.Stubs = []byte(`{"steps":{"A":[` + c.play + `]}}`)
			rel := ".workflow/runs/w-1/A.1"
			if _, err := b.e.StepPlayer(j, b.spec.Step("A"), b.root, rel, 0); err != nil {
				t.Fatal(err)
			}
			p := b.part(rel)
			switch {
			case c.answer == "":
				if p.Exit != 1 || !strings.Contains(p.Say, p.Ask) {
					t.Errorf("%s %s: nobody hears of it: %+v", c.signal, c.play, p)
				}
			case c.answer == "-" && p.Answer != nil, c.answer != "-" && string(p.Answer) != c.answer, p.Exit != 0:
				t.Errorf("%s %s: answers %s, exit %d; want %s", c.signal, c.play, p.Answer, p.Exit, c.answer)
			}
			if (p.Commit != "") != (c.signal == "git_commit" && c.play == "{}") {
				t.Errorf("%s %s: commits %q", c.signal, c.play, p.Commit)
			}
			if c.file != "" && p.Signal != c.file {
				t.Errorf("%s %s: signals %s", c.signal, c.play, p.Signal)
			}
		})
	}
}

// TestStandInJudges: what a reviewer's stand-in says is read as any reviewer's word.
func TestStandInJudges(t *testing.T) {
	b := newBench(t, standInSpec)
	b.e = b.executor(func(o *Options) { o.Self = "/sluice" })
	for script, want := range map[string]string{
		`{}`: `{"feedback":"stub for critic: gate G, round 1: nothing was looked at","scores":{"docs":100,"security":100}}`,
		`{"gates":{"G":[{"score":50,"scores":{"docs":20},"feedback":"thin"}]}}`:   `{"feedback":"thin","scores":{"docs":20,"security":50}}`,
		`{"roles":{"critic":[{"answer":{"scores":{"docs":1}},"feedback":"so"}]}}`: `{"feedback":"so","scores":{"docs":1}}`,
		`{"gates":{"G":[{"verdict":"reject"}]}}`:                                  `{"feedback":"stub for critic: gate G, round 1: nothing was looked at","scores":{"docs":100,"security":100},"verdict":"reject"}`,
		`{"gates":{"G":[{"say":"Hm."}]}}`:                                         ``,
	} {
		j := b.reviewJob("G", 1)
		j.RunInfo.Stubs = []byte(script)
		if _, err := b.e.ReviewPlayer(j, b.spec.Gate("G"), ".workflow/runs/w-1/G.1", 0); err != nil {
			t.Fatal(err)
		}
		var got any
		p := b.part(".workflow/runs/w-1/G.1")
		_ = json.Unmarshal(p.Answer, &got)
		raw, _ := json.Marshal(got)
		if p.Answer == nil {
			raw = nil
		}
		if string(raw) != want {
			t.Errorf("%s: %s, want %s", script, raw, want)
		}
	}
	os.Remove(b.path(".workflow/runs/w-1/G.1/" + stub.PartFile))
}

// TestPullStandIn: the good end of a stand-in counts as its pull request, and no forge is asked; another end does not.
func TestPullStandIn(t *testing.T) {
	b := newBench(t, strings.Replace(standInSpec, "git_commit", "pr_creation", 1))
	b.e = b.executor(func(o *Options) { o.Self = "/sluice" })
	j := b.watchJob("A", 1)
	j.RunInfo.Stubs = []byte(`{"commands":"real"}`)
	b.begin(j)
	if len(b.e.Health()) > 0 {
		t.Fatalf("the forge was asked: %v", b.e.Health())
	}
	rel := ".workflow/runs/w-1/A."
	for n, end := range []struct{ part, exit string }{{`{"signal":"done"}`, `{"code":0}`}, {`{"signal":"done"}`, `{"code":3}`}, {`{"signal":"failed"}`, `{"code":0}`}} {
		j := b.watchJob("A", n+1)
		j.RunInfo.Stubs = []byte(`{"commands":"real"}`)
		var s seen
		ctx, cancel := context.WithCancel(b.ctx())
		done := background(ctx, b.e, j, s.emit)
		b.put(fmt.Sprintf("%s%d/%s", rel, n+1, stub.PartFile), end.part)
		whole := fmt.Sprintf("%s%d/exit.json", rel, n+1)
		b.put(whole+".new", end.exit)
		if err := os.Rename(b.path(whole+".new"), b.path(whole)); err != nil { // as a launch's end is written
			t.Fatal(err)
		}
		if n == 0 {
			eventually(t, "it is seen", func() bool { return len(s.all()) > 0 })
		} else {
			health.Wait(ctx, 3*200*time.Millisecond)
		}
		cancel()
		<-done
		if seen := s.all(); n == 0 && seen[0].(engine.PullSeen).Ref != "the pull request of a stub" || n > 0 && len(seen) > 0 {
			t.Errorf("%+v: seen %+v", end, seen)
		}
	}
	j.Attempt.Offered = true
	if job.StandsIn(j, b.spec.Step("A")) {
		t.Error("a stand-in takes what is offered")
	}
}

// TestStubbedNotices: each notice of a run that stand-ins play says so, in its title and in its words; those of a real run
// do not.
func TestStubbedNotices(t *testing.T) {
	conform.Rule(t, "6-seeds stub.shown", "each kind of notice")
	b := newBench(t, gateSpec)
	for _, kind := range []string{engine.NoticeGate, engine.NoticeHuman, engine.NoticeReminder, engine.NoticeRejected, engine.NoticeEnded, engine.NoticePaused, engine.NoticeInfo} {
		for _, stubs := range []string{"", `{}`} {
			j := b.reviewJob("G", 1)
			j.RunInfo.Stubs = []byte(stubs)
			j.Notice = &engine.Notice{Kind: kind, Run: run1, Step: "A", Gate: "G", Text: "said so"}
			n := b.e.Notice(j)
			for where, text := range map[string]string{"title": n.Title, "body": n.Body, "brief": n.Brief} {
				if said := strings.Contains(text, "[stub]") || strings.Contains(text, "nothing in it is real work"); said != (stubs != "") {
					t.Errorf("%s, stubs %q: the %s is %q", kind, stubs, where, text)
				}
			}
		}
	}
}
