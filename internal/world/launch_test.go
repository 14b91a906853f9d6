//go:build linux || darwin

package world

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice/agents/launch"
	"sluice/engine"
	"sluice/gates"
	"sluice/internal/job"
	"sluice/internal/settings"
	"sluice/tools/conform"
)

// background carries a job out in the background until the context ends.
func background(ctx context.Context, e *World, j job.Job, emit func(engine.Event)) <-chan engine.Event {
	out := make(chan engine.Event, 1)
	go func() { out <- e.Carry(ctx, j, emit) }()
	return out
}

func (b *bench) runSpec(command string) { b.load(strings.Replace(runSpec, "%s", command, 1)) }

// TestAdopted: the daemon goes in the middle; another one goes on waiting for the same process.
func TestAdopted(t *testing.T) {
	conform.Rule(t, "3-engine adopt", "another daemon goes on waiting for the same process")
	conform.Rule(t, "3-engine adopt", "another executor goes on waiting for the same process")
	b := newBench(t, strings.Replace(runSpec, "%s", `"echo x >>ran; while [ ! -e go ]; do sleep 0.01; done; exit 5"`, 1))
	j := b.stepJob("A", 1, 1)
	ctx, cancel := context.WithCancel(b.ctx())
	first := background(ctx, b.e, j, nil)
	eventually(t, "it runs", func() bool { return b.has("ran") })
	cancel()
	if ev := <-first; ev != nil {
		t.Fatalf("%+v though it runs on", ev)
	}
	second := background(b.ctx(), b.executor(), j, nil)
	b.put("go", "")
	ev, ok := (<-second).(engine.ProcessEnded)
	if !ok || ev.Exit.Code != 5 || ev.Exit.Lost {
		t.Errorf("%+v", ev)
	}
	if got := b.get("ran"); got != "x\n" {
		t.Errorf("it ran %q", got)
	}
}

func (b *bench) stopJob(j job.Job) job.Job {
	j.Kind, j.Why = engine.DoStop, "superseded"
	return j
}

func TestStop(t *testing.T) {
	conform.Rule(t, "3-engine stop", "what is stopped is gone as a tree; stopping twice gives the same end")
	conform.Rule(t, "3-engine tree", "its child is gone too")
	b := newBench(t, strings.Replace(runSpec, "%s", `"sleep 1000 & echo $! >child; sleep 1000"`, 1))
	j := b.stepJob("A", 1, 1)
	ctx, cancel := context.WithCancel(b.ctx())
	running := background(ctx, b.e, j, nil)
	eventually(t, "it runs", func() bool { return b.has("child") && b.get("child") != "" })
	cancel()
	<-running
	for range 2 {
		ev, ok := b.e.Carry(b.ctx(), b.stopJob(j), nil).(engine.ProcessEnded)
		if !ok || !ev.Exit.Stopped || ev.Exit.Lost || ev.Key != j.Key {
			t.Errorf("stopped: %+v", ev)
		}
	}
	eventually(t, "its child is gone", func() bool {
		return b.sh("kill -0 "+strings.TrimSpace(b.get("child"))+" 2>/dev/null && echo lives || echo gone") == "gone"
	})
}

func TestStopOfWhatNeverStarted(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"true"`, 1))
	ev, ok := b.e.Carry(b.ctx(), b.stopJob(b.stepJob("A", 1, 1)), nil).(engine.ProcessEnded)
	if !ok || !ev.Exit.Lost || ev.Exit.Stopped {
		t.Errorf("%+v", ev)
	}
}

// TestStartAfterStop: what was stopped before it was there does not start any more, however late its start comes: that of
// a daemon that was killed may be on its way still. The same goes for what is launched below its key.
func TestStartAfterStop(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"touch began"`, 1))
	j := b.stepJob("A", 1, 1)
	if ev := b.e.Carry(b.ctx(), b.stopJob(j), nil).(engine.ProcessEnded); !ev.Exit.Lost {
		t.Errorf("nothing was there: %+v", ev.Exit)
	}
	if ev := b.carry(j); !ev.Exit.Stopped || b.has("began") {
		t.Errorf("it started: %+v", ev.Exit)
	}
	for _, e := range []*World{b.e, b.executor()} { // what is told of it stays
		if ev := e.Carry(b.ctx(), b.stopJob(j), nil).(engine.ProcessEnded); !ev.Exit.Stopped || ev.Exit.Lost {
			t.Errorf("stopped again: %+v", ev.Exit)
		}
	}
	b.load(`
workflow: {id: w}
steps:
  - {id: A, run: "true", success_criterion: "touch checked exits 0", next_step: DONE}
`)
	check := b.checkJob("A", 1)
	b.e.Carry(b.ctx(), b.stopJob(check), nil)
	b.carry(check)
	if b.has("checked") {
		t.Error("the criterion of a check that was stopped ran")
	}
	if ev := b.carry(b.stepJob("A", 1, 12)); ev.Exit.Stopped || ev.Exit.Code != 0 { // its key begins as the first's
		t.Errorf("another launch: %+v", ev.Exit)
	}
}

// TestStopOfEnded: what had ended by itself keeps its end; a launch whose key begins alike is left alone.
func TestStopOfEnded(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"exit 7"`, 1))
	b.carry(b.stepJob("A", 1, 1))
	b.runSpec(`"touch other; sleep 1000"`)
	ctx, cancel := context.WithCancel(b.ctx())
	other := background(ctx, b.e, b.stepJob("A", 1, 11), nil)
	eventually(t, "the other runs", func() bool { return b.has("other") })
	ev := b.e.Carry(b.ctx(), b.stopJob(b.stepJob("A", 1, 1)), nil).(engine.ProcessEnded)
	if ev.Exit.Code != 7 || ev.Exit.Stopped || ev.Exit.Lost {
		t.Errorf("%+v", ev.Exit)
	}
	cancel()
	if ev := <-other; ev != nil {
		t.Errorf("the launch 1.11 ended with 1.1: %+v", ev)
	}
	b.e.Carry(b.ctx(), b.stopJob(b.stepJob("A", 1, 11)), nil)
}

// TestStopOfCheck ends the command of a criterion.
func TestStopOfCheck(t *testing.T) {
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "true", success_criterion: "touch $HOME/began; sleep 1000 exits 0", next_step: DONE}
`)
	j := b.checkJob("A", 1)
	ctx, cancel := context.WithCancel(b.ctx())
	running := background(ctx, b.e, j, nil)
	eventually(t, "it runs", func() bool { return b.has("began") })
	cancel()
	if ev := <-running; ev != nil {
		t.Errorf("%+v", ev)
	}
	if ev := b.e.Carry(b.ctx(), b.stopJob(j), nil).(engine.ProcessEnded); !ev.Exit.Stopped {
		t.Errorf("%+v", ev.Exit)
	}
}

func TestIdle(t *testing.T) {
	conform.Rule(t, "field ask 3", "a silent agent is ended")
	conform.Rule(t, "7-agents timeouts", "an agent that says nothing is ended")
	conform.Rule(t, "1-language timeout", "idle_timeout")
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "echo hi; sleep 1000", idle_timeout: 300ms, next_step: DONE}
`)
	for _, e := range []*World{b.e, b.executor()} { // the second one was not there when it was ended
		b.e = e
		ev := b.carry(b.stepJob("A", 1, 1))
		if !ev.Exit.Idle || !ev.Exit.Stopped {
			t.Errorf("exit %+v", ev.Exit)
		}
		wantText(t, "its output", ev.Output, "hi")
	}
}

// TestASleepIsNoSilence: the machine was asleep, or its clock set on. What the agent said a moment before was not an hour
// ago.
func TestASleepIsNoSilence(t *testing.T) {
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "sleep 1; echo a; sleep 2; echo b; touch said; sleep 2.5", idle_timeout: 4s, next_step: DONE}
`)
	b.e = b.executor(func(o *Options) {
		o.Now = func() time.Time {
			now := time.Now()
			if b.has("said") {
				now = now.Round(0).Add(time.Hour)
			}
			return now
		}
	})
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.Idle || ev.Exit.Stopped || ev.Exit.Code != 0 {
		t.Errorf("%+v", ev.Exit)
	}
}

// TestAnAgentThatCleansTheRepoIsHeard: git clean takes the folder with its output away. What it says goes on to be kept, and
// it is not taken for silent.
func TestAnAgentThatCleansTheRepoIsHeard(t *testing.T) {
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "echo first; git clean -xfdq; for i in 1 2 3 4 5 6 7 8 9; do sleep 0.5; echo line $i; done; exit 3", idle_timeout: 3s, next_step: DONE}
`)
	ev := b.carry(b.stepJob("A", 1, 1))
	if ev.Exit.Idle || ev.Exit.Code != 3 {
		t.Errorf("%+v", ev.Exit)
	}
	wantText(t, "its output", ev.Output, "first", "line 1", "line 9")
}

const answerSpec = `
workflow: {id: w}
steps:
  - id: A
    agent: {type: writer, prompt: plan it}
    answer: {type: object, required: [plan], properties: {plan: {type: string}, depth: {type: integer, default: 2}}}
    signal: {type: %s}
    gate: G
gates:
  - {id: G, reviewer: {level: auto, from: step}, on_pass: {next_step: DONE}}
`

func TestAnswerIsAskedForAgain(t *testing.T) {
	conform.Rule(t, "001 summary.schema", "asked twice again, then it is bad")
	conform.Rule(t, "1-language answer", "asked again twice for an answer that is not to its schema; defaults filled in")
	conform.Rule(t, "1-language answer", "two corrections, then it is bad")
	for _, x := range []struct {
		rightAt, asked int
	}{{1, 1}, {2, 2}, {9, 1 + gates.MaxCorrections}} {
		t.Run(fmt.Sprint("right at ", x.rightAt), func(t *testing.T) {
			b := newBench(t, strings.Replace(answerSpec, "%s", "stdout_exit", 1))
			b.script("one", fmt.Sprintf(`echo x >>.git/ran; n=$(wc -l <.git/ran); cat >.git/prompt$n
if [ $n -ge %d ]; then printf '{"plan":"p","token":"%%s"}' $SLUICE_TOKEN >"$SLUICE_ANSWER"; else echo '{"plan": 3}'; fi`, x.rightAt))
			for range 2 {
				ev := b.carry(b.stepJob("A", 1, 1))
				right := x.rightAt <= 1+gates.MaxCorrections
				if right && (string(ev.Answer) != `{"depth":2,"plan":"p"}` || ev.AnswerBad != "") || !right && (ev.Answer != nil || !strings.Contains(ev.AnswerBad, "plan")) {
					t.Errorf("answer %s bad %q", ev.Answer, ev.AnswerBad)
				}
			}
			if got := strings.Count(b.get(".git/ran"), "x"); got != x.asked {
				t.Errorf("asked %d times, want %d", got, x.asked)
			}
			if x.asked > 1 {
				wantText(t, "the correction", b.get(".git/prompt2"), "could not be read", "plan it", `{"plan": 3}`)
			}
		})
	}
}

// TestAnswerInTheSentinel: an answer that comes with the signal is not asked for again.
func TestAnswerInTheSentinel(t *testing.T) {
	b := newBench(t, strings.Replace(answerSpec, "%s", "sentinel_file", 1))
	b.script("one", `echo x >>.git/ran; printf '{"status":"done","answer":{"plan":"p"}}' >"$SLUICE_SIGNAL"`)
	ev := b.carry(b.stepJob("A", 1, 1))
	if ev.AnswerBad != "" || b.get(".git/ran") != "x\n" {
		t.Errorf("%+v; it ran %q", ev, b.get(".git/ran"))
	}
}

func TestFailedAgentIsNotAskedForItsAnswer(t *testing.T) {
	b := newBench(t, strings.Replace(answerSpec, "%s", "stdout_exit", 1))
	b.script("one", `echo x >>.git/ran; echo sorry; exit 1`)
	ev := b.carry(b.stepJob("A", 1, 1))
	if ev.Exit.Code != 1 || ev.AnswerBad != "" || b.get(".git/ran") != "x\n" {
		t.Errorf("%+v; it ran %q", ev, b.get(".git/ran"))
	}
	wantText(t, "its output", ev.Output, "sorry")
}

func TestAgentsTakeTurns(t *testing.T) {
	conform.Rule(t, "7-agents turns", "two agents of a role, one after the other")
	b := newBench(t, agentSpec)
	b.put("in.txt", "x")
	b.script("one", `echo one >>.git/who`)
	b.script("two", `echo two >>.git/who`)
	b.settings.Roles[settings.AnyRole] = settings.Role{Agent: []string{"one", "two"}}
	for nth := range 3 {
		j := b.stepJob("A", nth+1, 1)
		j.Turn = nth
		b.carry(j)
	}
	if got := b.get(".git/who"); got != "one\ntwo\none\n" {
		t.Errorf("who: %q", got)
	}
}

func TestAgentCommands(t *testing.T) {
	conform.Rule(t, "001 agent.settings", "program, arguments, model")
	conform.Rule(t, "003 model", "in the agent's command")
	conform.Rule(t, "002 models", "a role's model is handed to its program")
	b := newBench(t, agentSpec)
	b.put("in.txt", "x")
	b.put(".workflow/prompts/w.md", "You are the writer of the template.")
	prompt := b.path(".workflow/runs/w-1/A.%d/prompt.md")
	for i, x := range []struct {
		agent settings.Agent
		want  []string
	}{
		{settings.Agent{Command: []string{"--", "${{role}}", "-m=${{ model }}", "${{prompt_file}}", ".workflow/x"}, PromptVia: settings.ViaFile}, []string{"writer", "-m=big", prompt, b.path(".workflow/x")}},
		{settings.Agent{Command: []string{"--"}, PromptVia: settings.ViaFile}, []string{prompt}},
		{settings.Agent{Command: []string{"--"}, PromptVia: settings.ViaArg}, []string{"# Step A"}},
	} {
		b.put("agents/args", "#!/bin/sh\nshift; cat >.git/stdin; for a; do printf '%s\\n' \"$a\"; done >.git/args")
		b.sh("chmod +x agents/args")
		x.agent.Command = append([]string{"./agents/args"}, x.agent.Command...)
		b.settings.Agents["args"] = x.agent
		b.settings.Roles["writer"] = settings.Role{Agent: []string{"args"}, Model: "big", PromptFile: "prompts/w.md"}
		if ev := b.carry(b.stepJob("A", i+1, 1)); ev.Exit.Code != 0 || ev.Exit.NotStarted != "" {
			t.Fatalf("%d: %+v %s", i, ev.Exit, ev.Output)
		}
		for j, want := range x.want {
			if strings.Contains(want, "%d") {
				x.want[j] = fmt.Sprintf(want, i+1)
			}
		}
		if got := b.get(".git/args"); !strings.HasPrefix(got, strings.Join(x.want, "\n")) {
			t.Errorf("%d: arguments %q, want %q", i, got, x.want)
		}
		if got := b.get(".git/stdin"); got != "" {
			t.Errorf("%d: on standard input %q", i, got)
		}
		wantText(t, "the prompt", b.get(fmt.Sprintf(".workflow/runs/w-1/A.%d/prompt.md", i+1)), "You are the writer of the template.")
	}
}

func TestMissingTemplateIsFatal(t *testing.T) {
	b := newBench(t, agentSpec)
	b.put("in.txt", "x")
	b.script("one", "true")
	b.settings.Roles["writer"] = settings.Role{Agent: []string{"one"}, PromptFile: "prompts/none.md"}
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.Class != engine.ClassFatal || !strings.Contains(ev.Exit.Why, "prompts/none.md") {
		t.Errorf("%+v", ev.Exit)
	}
}

// TestNoOptionByAValue: a value cannot make an argument an option.
func TestNoOptionByAValue(t *testing.T) {
	conform.Rule(t, "1-language values.dash", "an argument made an option by a value is refused")
	conform.Rule(t, "1-language values.dash", "a value cannot make an argument an option")
	b := newBench(t, `
workflow: {id: w, vars: {goal: x}}
steps:
  - {id: A, run: [touch, "${{vars.goal}}"], next_step: DONE}
`)
	j := b.stepJob("A", 1, 1)
	j.Vars["goal"] = "--help"
	if ev := b.carry(j); !strings.Contains(ev.Exit.Refused, "option") {
		t.Errorf("%+v", ev.Exit)
	}
	j = b.stepJob("A", 2, 1)
	j.Vars["goal"] = "fine; touch bad"
	if ev := b.carry(j); ev.Exit.Code != 0 || !b.has("fine; touch bad") || b.has("bad") {
		t.Errorf("%+v", ev.Exit)
	}
}

func TestSecondLaunchHasItsOwnFolder(t *testing.T) {
	conform.Rule(t, "8-semantics 11", "<step>.<n>/launch-<k>")
	b := newBench(t, strings.Replace(runSpec, "%s", `"echo $SLUICE_ANSWER; exit 1"`, 1))
	b.carry(b.stepJob("A", 1, 1))
	b.carry(b.stepJob("A", 1, 2))
	for _, dir := range []string{"A.1", "A.1/launch-2"} {
		if got := b.get(".workflow/runs/w-1/" + dir + "/stdout"); got != b.path(".workflow/runs/w-1/"+dir+"/answer.json\n") {
			t.Errorf("%s: %q", dir, got)
		}
	}
}

// TestAnswerOfACommand: its folder is there before it has printed anything.
func TestAnswerOfACommand(t *testing.T) {
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "printf '{\"a\":1,\"token\":\"%s\"}' $SLUICE_TOKEN >$SLUICE_ANSWER", next_step: DONE}
`)
	if ev := b.carry(b.stepJob("A", 1, 1)); string(ev.Answer) != `{"a":1}` {
		t.Errorf("%s, %+v", ev.Answer, ev.Exit)
	}
}

func TestStdoutWhereTheSpecReadsIt(t *testing.T) {
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "echo out; echo err >&2", next_step: B}
  - {id: B, run: [echo, "${{steps.A.stdout}}"], next_step: DONE}
`)
	if ev := b.carry(b.stepJob("A", 1, 1)); ev.Output != "out\n" {
		t.Errorf("output %q", ev.Output)
	}
	b.runSpec(`"echo out"`)
	if ev := b.carry(b.stepJob("A", 2, 1)); ev.Output != "" {
		t.Errorf("output that nothing reads: %q", ev.Output)
	}
}

// TestBareCommandHasNoRole: what is set for roles is not a bare command's.
func TestBareCommandHasNoRole(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"env >env.txt"`, 1))
	b.settings.Roles[settings.AnyRole] = settings.Role{Agent: []string{"claude"}, Env: []string{"SECRET"}}
	b.carry(b.stepJob("A", 1, 1))
	if got := b.get("env.txt"); strings.Contains(got, "s3cret") || strings.Contains(got, "SLUICE_ROLE") {
		t.Errorf("its environment:\n%s", got)
	}
}

// TestCommandOfARole: a command with agent.type gets its role's environment, and no other role's.
func TestCommandOfARole(t *testing.T) {
	for role, want := range map[string]bool{"publisher": true, "writer": false} {
		t.Run(role, func(t *testing.T) {
			b := newBench(t, strings.Replace(runSpec, "%s", "env >env.txt\n    agent: {type: "+role+"}", 1))
			b.settings.Roles["publisher"] = settings.Role{Agent: []string{"claude"}, Env: []string{"SECRET"}}
			b.carry(b.stepJob("A", 1, 1))
			got := b.get("env.txt")
			if strings.Contains(got, "s3cret") != want || !strings.Contains(got, "SLUICE_ROLE="+role) {
				t.Errorf("its environment:\n%s", got)
			}
		})
	}
}

// TestNotPreparedTwice: a launched process is not prepared again.
func TestNotPreparedTwice(t *testing.T) {
	b := newBench(t, agentSpec)
	b.put("in.txt", "x")
	b.script("one", "rm in.txt; exit 6")
	for range 2 {
		if ev := b.carry(b.stepJob("A", 1, 1)); ev.Exit.Refused != "" || ev.Exit.Code != 6 {
			t.Errorf("%+v", ev.Exit)
		}
	}
}

// TestRetryContextInThePrompt: an attempt sees the failures that concern its step: of its own work,
// those sent to it, and those on whose path it is. It does not see those of a parallel branch.
func TestRetryContextInThePrompt(t *testing.T) {
	conform.Rule(t, "13-law prompts", "an attempt is shown the failures that concern its step; a first attempt is not told that its work was sent back")
	b := newBench(t, `
workflow: {id: w}
steps:
  - {id: A, run: "true", next_step: [B, X]}
  - {id: B, agent: {type: one, prompt: do it}, next_step: C}
  - {id: C, run: "true", gate: GC}
  - {id: F, agent: {type: one, prompt: fix it}, next_step: C}
  - {id: X, agent: {type: one, prompt: aside}, gate: GX}
gates:
  - {id: GC, reviewer: {level: human}, on_pass: {next_step: DONE}, on_fail: {next_step: F}}
  - {id: GX, reviewer: {level: human}, on_pass: {next_step: DONE}}
`)
	b.script("one", "true")
	sent := func(gate, step, to string) job.RetryFile {
		path := ".workflow/retry-context/" + gate + "-" + to + ".md"
		b.put(path, "words of "+gate+" for "+to)
		return job.RetryFile{Gate: gate, Path: path, Step: step, To: to}
	}
	all := []job.RetryFile{sent("GC", "C", "B"), sent("GC", "C", "F"), sent("GX", "X", "X")}
	for _, c := range []struct {
		step string
		n    int
		want []int // of all
		says string
	}{
		{"B", 1, []int{0}, "The work of another step was judged"},
		{"B", 2, []int{0}, "This step was done before."},
		{"F", 1, []int{1}, "The work of another step was judged"},
		{"X", 2, []int{2}, "This step was done before."},
	} {
		j := b.stepJob(c.step, c.n, 1)
		j.History = all
		b.carry(j)
		prompt := b.get(fmt.Sprintf(".workflow/runs/w-1/%s.%d/prompt.md", c.step, c.n))
		wantText(t, c.step, prompt, c.says)
		for i, f := range all {
			if got, want := strings.Contains(prompt, "words of "+f.Gate+" for "+f.To), slices.Contains(c.want, i); got != want {
				t.Errorf("%s.%d is shown the words of %s for %s: %v", c.step, c.n, f.Gate, f.To, got)
			}
		}
	}
}

// TestALinkInTheWay: what can never work is reported at once, not tried for ever; nothing is left
// behind the link.
func TestALinkInTheWay(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"true"`, 1))
	out := t.TempDir()
	b.sh("ln -s " + out + " .workflow/runs")
	if ev := b.carry(b.stepJob("A", 1, 1)); !strings.Contains(ev.Exit.NotStarted, "link") {
		t.Errorf("%+v", ev.Exit)
	}
	if got := b.sh("ls " + out); got != "" {
		t.Errorf("left outside: %s", got)
	}
}

// TestNotesEnd: health says nothing of an effect that is owed no more.
func TestNotesEnd(t *testing.T) {
	b := newBench(t, strings.Replace(runSpec, "%s", `"true"`, 1))
	j := b.stepJob("A", 1, 1)
	j.Spec = nil
	ctx, cancel := context.WithCancel(b.ctx())
	done := background(ctx, b.e, j, nil)
	eventually(t, "health tells", func() bool { return len(b.e.Health()) == 1 })
	cancel()
	if ev := <-done; ev != nil || len(b.e.Health()) != 0 {
		t.Errorf("%+v; health %v", ev, b.e.Health())
	}
}

func TestSlots(t *testing.T) {
	b := newBench(t, agentSpec)
	b.put("in.txt", "x")
	b.script("one", `echo $SLUICE_ATTEMPT >>.git/ran; while [ ! -e go ]; do sleep 0.01; done`)
	b.settings.MaxAgents = 1
	b.e = b.executor(func(o *Options) { o.Slots = &launch.Slots{} })
	said := make(chan engine.Event, 10)
	j := func(n int) job.Job {
		again := b.stepJob("A", n, 1)
		again.Attempt.Deadline = time.Now().Add(time.Hour)
		return again
	}
	next := func() engine.Event {
		select {
		case ev := <-said:
			return ev
		case <-time.After(waitFor):
			t.Fatal("it says nothing")
			return nil
		}
	}
	first := background(b.ctx(), b.e, j(1), func(ev engine.Event) { said <- ev })
	eventually(t, "the first runs", func() bool { return b.has(".git/ran") })
	if len(said) > 0 {
		t.Errorf("of the first: %+v", <-said)
	}
	second := background(b.ctx(), b.e, j(2), func(ev engine.Event) { said <- ev })
	if ev, ok := next().(engine.SlotAwaited); !ok || ev.Key != j(2).Key || ev.Run != run1 {
		t.Errorf("of the second: %+v", ev)
	}
	time.Sleep(3 * launch.SlotPace) // that nothing happens cannot be polled for
	if got := b.get(".git/ran"); got != "1\n" {
		t.Errorf("it ran %q with one slot", got)
	}
	b.put("go", "")
	<-first
	<-second
	if got := b.get(".git/ran"); got != "1\n2\n" {
		t.Errorf("it ran %q", got)
	}
	if ev, ok := next().(engine.SlotTaken); !ok || ev.Key != j(2).Key || len(said) > 0 {
		t.Errorf("of the second: %+v", ev)
	}
	late := j(2) // a daemon that was ended between the start and its word
	late.Attempt.Deadline = time.Time{}
	<-background(b.ctx(), b.e, late, func(ev engine.Event) { said <- ev })
	if ev, ok := next().(engine.SlotTaken); !ok {
		t.Errorf("after a restart: %+v", ev)
	}
	if b.e.opt.Slots.InUse() != 0 {
		t.Errorf("%d slots are still taken", b.e.opt.Slots.InUse())
	}
}
