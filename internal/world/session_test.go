//go:build linux || darwin

package world

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/engine"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/settings"
	"sluice/tools/conform"
)

const sessionSpec = `
workflow: {id: w}
steps:
  - {id: A, agent: {type: writer, prompt: do the task, session: main}, signal: {type: stdout_exit}, next_step: B}
  - {id: B, agent: {type: writer, prompt: do the task, session: main}, signal: {type: stdout_exit}, next_step: Q}
  - {id: Q, agent: {type: writer, prompt: do the task}, signal: {type: stdout_exit}, answer: {type: object, required: [plan], properties: {plan: {type: array}}}, gate: G}
gates:
  - id: G
    reviewer: {level: auto, agent_type: judge, prompt: look, session: judge}
    on_pass: {next_step: DONE}
`

// talker is a claude that keeps conversations as files: it counts what was said in one, and costs of all of it.
const talker = `id=; while [ $# -gt 0 ]; do [ "$1" = --resume ] && id=$2; shift; done
mkdir -p .git/talks; echo "resume:$id" >>.git/asked
if [ -n "$id" ] && [ ! -e .git/talks/$id ]; then
  echo "{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true,\"num_turns\":0,\"errors\":[\"No conversation found with session ID: $id\"]}"; exit 1
fi
[ -n "$id" ] || { n=$(ls .git/talks | wc -l); id=talk-000$n; : >.git/talks/$id; }
echo x >>.git/talks/$id; n=$(wc -l <.git/talks/$id)
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$id\"}"
`

const talkerEnd = `
echo "{\"type\":\"result\",\"subtype\":\"success\",\"num_turns\":1,\"session_id\":\"$id\",\"result\":\"$said\",\"total_cost_usd\":$n,\"usage\":{\"input_tokens\":90,\"output_tokens\":10},\"modelUsage\":{\"m\":{\"inputTokens\":$((n*90)),\"outputTokens\":$((n*10))}}}"
`

func newTalks(t *testing.T, said string) *bench {
	t.Helper()
	b := newBench(t, sessionSpec)
	b.claude(talker + said + talkerEnd)
	return b
}

// TestSessionGoesOn: a launch continues the conversation of its name, and costs what it adds to it;
// a missing one begins again, which counts as nothing.
func TestSessionGoesOn(t *testing.T) {
	b := newTalks(t, "said=done")
	once := engine.Usage{Tokens: 100, CostUSD: 1}
	for i, step := range []string{"A", "B"} {
		if ev := b.carry(b.stepJob(step, 1, 1)); ev.Exit.Class != "" || ev.Exit.Usage != once {
			t.Errorf("%d: %+v", i, ev.Exit)
		}
	}
	if got := b.get(".git/asked"); got != "resume:\nresume:talk-0000\n" {
		t.Fatalf("asked %q", got)
	}
	b.e = b.executor() // another daemon
	b.carry(b.stepJob("B", 2, 1))
	b.sh("rm .git/talks/talk-0000; touch .git/talks/other")
	ev := b.carry(b.stepJob("B", 3, 1))
	if ev.Exit.Class != engine.ClassLimit || ev.Exit.ResumeAt.IsZero() || ev.Exit.ResumeAt.After(b.e.opt.Now()) || !strings.Contains(ev.Exit.Why, "session main is gone") || ev.Exit.Usage != (engine.Usage{}) {
		t.Errorf("gone: %+v", ev.Exit)
	}
	if ev := b.carry(b.stepJob("B", 3, 2)); ev.Exit.Class != "" || ev.Exit.Usage != once {
		t.Errorf("anew: %+v", ev.Exit)
	}
	b.carry(b.stepJob("B", 4, 1))
	if got := b.get(".git/asked"); got != "resume:\nresume:talk-0000\nresume:talk-0000\nresume:talk-0000\nresume:\nresume:talk-0001\n" {
		t.Errorf("asked %q", got)
	}
	var p launch.Program
	if p, _ = launch.ReadProgram(b.path(".workflow/runs/w-1/B.4")); p.Session != "main" || p.Resume != "talk-0001" || p.Base != (program.Usage{Input: 90, Output: 10, CostUSD: 1, Billed: 100}) {
		t.Errorf("%+v", p)
	}
}

// TestReviewerSpeaksApart: a reviewer whose session has the name of its step's begins a conversation of its own, in
// another home, and goes on in that one.
func TestReviewerSpeaksApart(t *testing.T) {
	b := newBench(t, strings.Replace(sessionSpec, "session: judge", "session: main", 1))
	b.claude(talker + `said='{\"plan\": [], \"verdict\": \"pass\"}'` + talkerEnd)
	step, review := b.stepJob("A", 1, 1), b.reviewJob("G", 1)
	b.carry(step)
	for _, j := range []job.Job{review, b.reviewJob("G", 2)} {
		if ev := b.carry(j); ev.Verdict == nil {
			t.Fatalf("%+v", ev)
		}
	}
	if got := b.get(".git/asked"); got != "resume:\nresume:\nresume:talk-0001\n" {
		t.Errorf("asked %q", got)
	}
	of, judge := launch.Holder(b.e.Layout, step.Key, false), launch.Holder(b.e.Layout, review.Key, true)
	if of == judge || !strings.HasPrefix(of, "session ") || !strings.HasPrefix(judge, "session ") {
		t.Errorf("the homes: %q and %q", of, judge)
	}
}

// TestSessionOfAnAttempt: a conversation whose name says of which attempt it is begins with that one, and goes on with a second
// launch for it; its record has a name of its own.
func TestSessionOfAnAttempt(t *testing.T) {
	conform.Rule(t, "002 session.jsonl", "of a program whose events are read")
	b := newBench(t, strings.Replace(sessionSpec, "session: main", `session: "wf-${{run}}-${{step}}-${{attempt}}"`, 1))
	b.claude(talker + "said=done" + talkerEnd)
	for _, j := range [][2]int{{1, 1}, {1, 2}, {2, 1}} {
		b.carry(b.stepJob("A", j[0], j[1]))
	}
	if got := b.get(".git/asked"); got != "resume:\nresume:talk-0000\nresume:\n" {
		t.Errorf("asked %q", got)
	}
	if p, _ := launch.ReadProgram(b.path(".workflow/runs/w-1/A.2")); p.Session != "wf-w-1-A-2" {
		t.Errorf("%+v", p)
	}
	if got := b.get(".workflow/runs/w-1/A.2/session.jsonl"); got != b.get(".workflow/runs/w-1/A.2/stdout") || !strings.Contains(got, `"session_id":"talk-0001"`) {
		t.Errorf("the record: %q", got)
	}
}

// TestSessionsOfLikeNames: conversations stay distinct though their names cannot be used for files,
// and the longest name still fits.
func TestSessionsOfLikeNames(t *testing.T) {
	b := newBench(t, sessionSpec)
	files, homes := map[string]string{}, map[string]string{}
	for _, name := range []string{"a/b", "a:b", "a=b", `a\b`, strings.Repeat("é", 79) + "/1", strings.Repeat("é", 79) + "/2"} {
		for _, agent := range []string{"claude", strings.Repeat("c", 120)} {
			file := launch.SessionFile(b.e.State, "w-1", name, agent)
			if other := files[file]; other != "" {
				t.Errorf("%q of %s and %q are one", name, agent, other)
			}
			files[file] = name
			if err := layout.Save(file, launch.Session{}); err != nil {
				t.Error(err)
			}
			key := fmt.Sprintf("w-1/A#%d.1", len(files))
			if err := layout.Save(b.e.PIDFile(key)+".agent", launch.Program{Agent: agent, Session: name}); err != nil {
				t.Error(err)
			}
			home := layout.PathElement(launch.Holder(b.e.Layout, key, false))
			if other := homes[home]; other != "" || os.Mkdir(filepath.Join(t.TempDir(), home), 0o700) != nil {
				t.Errorf("the home of %q of %s is %s, and that of %q", name, agent, home, other)
			}
			homes[home] = name
		}
	}
}

// TestSessionInUse: two launches at a time do not speak in one conversation; and who was never started holds none.
func TestSessionInUse(t *testing.T) {
	b := newTalks(t, "said=done; while [ -e .git/hold ]; do sleep 0.05; done")
	b.carry(b.stepJob("A", 1, 1))
	b.put(".git/hold", "")
	ctx, cancel := context.WithCancel(b.ctx())
	defer cancel()
	running := background(ctx, b.e, b.stepJob("A", 2, 1), nil)
	eventually(t, "it speaks", func() bool { return strings.Count(b.get(".git/asked"), "\n") == 2 })
	other := background(ctx, b.e, b.stepJob("B", 1, 1), nil)
	eventually(t, "another speaks", func() bool { return strings.Count(b.get(".git/asked"), "\n") == 3 })
	b.sh("rm .git/hold")
	<-running
	<-other
	good := b.settings.Agents["claude"]
	b.settings.Agents["claude"] = settings.Agent{Command: []string{"./agents/none"}, Format: program.Claude}
	b.carry(b.stepJob("B", 2, 1))
	b.settings.Agents["claude"] = settings.Agent{Command: []string{"./agents/claude", "${{model}}"}, Format: program.Claude}
	b.settings.Roles[settings.AnyRole] = settings.Role{Agent: []string{"claude"}, Model: "--refused"}
	if ev := b.carry(b.stepJob("B", 2, 2)); ev.Exit.NotStarted == "" {
		t.Errorf("%+v", ev.Exit)
	}
	b.settings.Agents["claude"], b.settings.Roles[settings.AnyRole] = good, settings.Role{Agent: []string{"claude"}}
	b.carry(b.stepJob("B", 3, 1))
	if got := b.get(".git/asked"); got != "resume:\nresume:talk-0000\nresume:\nresume:talk-0000\n" {
		t.Errorf("asked %q", got)
	}
}

// TestCorrectionGoesOn: a correction is asked for in the same conversation, without the task; if
// that is gone, with the task.
func TestCorrectionGoesOn(t *testing.T) {
	good, bad := `{\"plan\": []}`, `{\"plan\": 7}`
	pass := `{\"verdict\": \"pass\"}`
	for name, c := range map[string]struct {
		job  func(b *bench) job.Job
		good string
	}{
		"a step":   {func(b *bench) job.Job { return b.stepJob("Q", 1, 1) }, good},
		"a review": {func(b *bench) job.Job { return b.reviewJob("G", 1) }, pass},
	} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", gone: ", gone), func(t *testing.T) {
				after := ""
				if gone {
					after = "\n[ -e .git/was ] || rm .git/talks/*; touch .git/was"
				}
				b := newTalks(t, fmt.Sprintf("said='%s'; [ -e .git/once ] && said='%s'; touch .git/once%s", bad, c.good, after))
				j := c.job(b)
				ev := b.carry(j)
				if ev.AnswerBad != "" || ev.Exit.Class != "" || j.Proc.Kind == engine.ProcReview && (ev.Verdict == nil || ev.Verdict.Outcome != engine.OutcomePass) {
					t.Fatalf("%+v %+v", ev, ev.Verdict)
				}
				if ev.Exit.Usage != (engine.Usage{Tokens: 200, CostUSD: 2}) {
					t.Errorf("usage %+v", ev.Exit.Usage)
				}
				asked, dir := "resume:\nresume:talk-0000\n", b.e.JobDir(j)+"/again-1"
				if gone {
					asked, dir = asked+"resume:\n", dir+"-new"
				}
				if got := b.get(".git/asked"); got != asked {
					t.Errorf("asked %q", got)
				}
				prompt := b.get(dir + "/prompt.md")
				wantText(t, "the correction", prompt, "could not be read")
				if whole := strings.Contains(prompt, "do the task"); whole != gone {
					t.Errorf("the task is told again: %v\n%s", whole, prompt)
				}
			})
		}
	}
}

// TestRoleArgs: what a role adds stands in every launch of its agent: the first, one that goes on in a conversation, a
// correction, and a reviewer's; what it names below .workflow/ is the root's.
func TestRoleArgs(t *testing.T) {
	conform.Rule(t, "13-law args", `"model, tools, MCP, permissions of one step": "`+"`roles.NAME.args: […]`"+`, appended to the agent's command": in each launch, the first, resumed, correcting and reviewing ones`)
	b := newBench(t, sessionSpec)
	b.claude(`echo "$*" >>.git/argv` + "\n" + talker + `said='{\"plan\": 7}'; [ -e .git/once ] && said='{\"plan\": [], \"verdict\": \"pass\"}'; touch .git/once` + talkerEnd)
	b.settings.Roles["writer"] = settings.Role{Agent: []string{"claude"}, Args: []string{"--tools", "Read,Grep", "--mcp-config=.workflow/mcp.json"}}
	b.settings.Roles["judge"] = settings.Role{Agent: []string{"claude"}, Args: []string{"--settings", ".workflow/judge.json"}}
	b.carry(b.stepJob("A", 1, 1))
	b.carry(b.stepJob("B", 1, 1))
	b.sh("rm .git/once")
	b.carry(b.stepJob("Q", 1, 1))
	b.sh("rm .git/once")
	b.carry(b.reviewJob("G", 1))
	lines := strings.Split(strings.TrimSpace(b.get(".git/argv")), "\n")
	if len(lines) != 6 {
		t.Fatalf("%d launches:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for i, line := range lines {
		want := "--tools Read,Grep --mcp-config=" + b.path(".workflow/mcp.json") + " -p "
		if i >= 4 {
			want = "--settings " + b.path(".workflow/judge.json") + " -p "
		}
		if resumed := i == 1 || i == 3 || i == 5; !strings.HasPrefix(line, want) || strings.Contains(line, "--resume talk-") != resumed {
			t.Errorf("launch %d: %s\nwant %s…, resumed: %v", i+1, line, want, resumed)
		}
	}
	if p, _ := launch.ReadProgram(b.path(".workflow/runs/w-1/A.1")); strings.Join(p.Args, " ") != "--tools Read,Grep --mcp-config=.workflow/mcp.json" {
		t.Errorf("agent.json: %q", p.Args)
	}
}

// TestRoleArgsOfText: they stand before the prompt of an agent of format text.
func TestRoleArgsOfText(t *testing.T) {
	b := newBench(t, sessionSpec)
	b.settings.Agents["qwen"] = settings.Agent{Command: []string{"sh", "-c", `printf '%s|' "$0" "$@" >.git/argv`, "qwen", "run"}, Format: settings.FormatText, PromptVia: settings.ViaArg}
	b.settings.Roles["writer"] = settings.Role{Agent: []string{"qwen"}, Args: []string{"--model", "small"}}
	b.carry(b.stepJob("A", 1, 1))
	before, prompt, _ := strings.Cut(b.get(".git/argv"), "|small|")
	if before != "qwen|run|--model" {
		t.Errorf("before the prompt: %q", before)
	}
	wantText(t, "the last argument", prompt, "do the task")
}
