//go:build linux

package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sluice/tools/conform"
)

// What the scripts of testdata/script hold, by name. TestScripts says so, and that the scripts are there.
func scriptsHold() map[string][][2]string {
	return map[string][][2]string{
		"settings-live": {{"13-law settings", "what held before stays where they have a fault"}},
		"example": {
			{"004 §3 example.runs", "byte for byte, through the daemon, from its first step to DONE"},
			{"004 §3 workflow", "the workflow's context files stand in the prompts"},
			{"004 §3 signal", "the sentinels at the values written"},
			{"004 §4 signals", "X-1-done.json is taken in from the folder"},
			{"004 §4 retry-context", "XG-1-2-attempt-1.md is written, and read by the second attempt"},
			{"004 §4 audit", "the record verifies"},
			{"004 §2 Reviewer.notify", "on when no veto came"},
			{"004 §2 Reviewer.human", "on by a pass file written by hand"},
			{"004 §5 question 2", "the program routes, agents write and judge"},
			{"3-engine adopt", "the daemon is killed with its agent alive; another takes it up, and it is launched once"},
			{"2-files signal 1", "a signal that came while no daemon ran is taken in"},
			{"4-trust shown", "status shows trust: file"},
		},
		"plain":   {{"9-one-tree plain", "diffs, a void answer, a second attempt, a checkout of the first; no branch is made and nothing lands"}},
		"replies": {{"13-law 003 tolerant", `"JSON parsing with tolerance for extra text/markdown code blocks": show says where a verdict was read, and has the end of a reply that could not be`}, {"13-law 004 history", `"Multiple retry rounds accumulate context files. The agent sees the full failure history": in the file, and in the next prompt`}},
		"trust":   {{"9-one-tree unheld", "each screen says trust: file (not held), and none of a held run"}},
		"template-supervised": {
			{"003 roles", "four roles in their order, three rounds"},
			{"6-seeds guides", "the run it shows"},
			{"003 state", "the prompts of each role"},
			{"003 iterations", "continue for ever ends after the tenth"},
			{"003 iterations.set", "max_iter=2; what bounds it besides goes by it too"},
			{"003 goal", "no goal, no run"},
			{"003 log", "events.jsonl"},
			{"003 persist", "killed and taken up again"},
			{"003 planner", "its schema"},
			{"003 executor", "its schema, by the commands that are run"},
			{"003 reviewer", "its schema, by what the planner is told"},
			{"003 controller", "its schema, by the routes"},
			{"003 tolerance", "a fence with text around"},
			{"003 corrections", "no JSON three times"},
			{"003 schema", "an empty answer of the executor"},
			{"003 safe", "no decision; no JSON of the controller"},
			{"003 prompts", "the prompts as written"},
			{"003 continue", "control #2"},
			{"003 adjust_plan", "control #1, and the next plan's prompt"},
			{"003 pause", "a person answers it"},
			{"003 stop", "control #3"},
			{"003 suggested", "nothing is made"},
			{"003 destructive", "rm is asked about"},
			{"13-law 003 confirm", "as shipped, a harmless one waits; with none, no other does"},
			{"13-law 003 rollback", "the files of the round before; never over changes in no commit"},
			{"13-law 003 iterations", "one round each by continue and rollback, then the last"},
			{"003 unmarked", "a command without a mark is asked about"},
			{"003 refused", "the next attempt's prompt"},
			{"003 allowed", "the file is changed between question and answer"},
			{"003 printed", "the reviewer's prompt"},
			{"003 audit", "prompts and stdout of a round"},
			{"003 state.fields", "the record, prompts, status of a run"},
			{"003 readonly", "git status and git log after a run"},
			{"003 corrections.each", "each of the three without JSON; the planner at the third time of asking"},
			{"003 roles.more", "an auditor between reviewer and controller"},
			{"003 least", "the planner's prompt"},
		},
		"template-backlog": {
			{"001 one task", "by the log of a run"},
			{"6-seeds guides", "the run it shows"},
			{"001 fresh context", "the prompt of T001's own launch"},
			{"001 bootstrap", "no task file"},
			{"001 validate", "a dependency that is not there, a cycle"},
			{"001 repair", "mended; the reason in the prompt; given up after the second time"},
			{"001 review", "T003 comes of the first review pass"},
			{"001 review.done", "the second says project-done"},
			{"001 max iterations", "max_iterations=5; the default stands in the spec"},
			{"13-law 001 iterations", "the review pass says more: failed; it says project-done: completed, with what is left named"},
			{"13-law 001 blockers", "T1's, in the file and in ls"},
			{"13-law 001 completed", "T1, T3 and T4 are named at the end, in status and in ls"},
			{"001 commit", "auto_commit=true"},
			{"001 file", "a key of one's own, source_files, what bootstrap and repair wrote"},
			{"001 selection", "five tasks, one of them doing; a blocked one last"},
			{"001 depends_on", "T3 before T1"},
			{"001 status", "done and blocked in the file"},
			{"001 summary", "answers of done and blocked; the schema in the prompt"},
			{"001 new_tasks", "added by a task"},
			{"001 prompt", "the task and the state of the others"},
			{"001 single", "real runs of script agents"},
			{"001 odd-even", "two agents over five tasks"},
			{"001 round-robin", "three agents over five tasks"},
			{"001 hooks", "after_task writes a line for each task, and counts in the file what is done"},
			{"13-law 001 hooks", "the file has T1 done when the hook after it runs"},
			{"001 log", "events.jsonl below last"},
			{"001 init", "--list, --template, with writer and reviewer"},
			{"001 repair.limit", "repaired twice, a cycle still"},
			{"001 error", "exit code 3, three times"},
			{"001 file.fields", "T4 has them all"},
			{"001 summary.task", "T4 says it did T2"},
			{"001 prompt.bootstrap", "as written"},
			{"001 prompt.repair", "file, line, reason"},
			{"001 prompt.log", "as written"},
			{"001 prompt.review", "as written"},
			{"001 agent.custom", "three script agents"},
			{"001 hooks.several", "two, and one between them that is no command"},
			{"001 log.time", "events.jsonl"},
			{"001 cli.run", "throughout"},
			{"001 cli.ls", "after a run"},
			{"001 cli.tail", "the review pass's words"},
			{"001 cli.validate", "after a run"},
			{"001 cli.config", "who plays iter, and where that stands"},
		},
		"template-backlog-ways": {
			{"001 bootstrap.checked", "a file without tasks"},
			{"001 bootstrap.fails", "no file, an empty file"},
			{"001 review.blocked", "both tasks blocked, two review passes"},
			{"001 kill", "with its agent, and without"},
			{"001 pause", "paused, killed, taken up again"},
			{"001 abort", "in mid-iteration"},
			{"001 turns", "two agents, two kills, a pause"},
			{"001 bootstrap.empty", "made empty, it is made again"},
		},
		"tasks_hand":     {{"001 doing", "as it was left by an abort"}},
		"tasks_parallel": {{"001 parallel", "two at a time"}},
		"tasks_cmd": {
			{"001 validate.names", "a cycle, a dependency that is not there"},
			{"001 cli.ls", "by status, one status, JSON, from elsewhere"},
			{"001 cli.validate", "good ones and bad ones, several at once"},
			{"001 cli.fmt", "twice as once; --check; mode kept"},
		},
		"stub-served": {
			{"6-seeds stub", "through the daemon, with steps that would be on offer"},
			{"6-seeds stub.script", "validate reads it: roles, steps, gates, verdicts, scores, times, a stray one"},
			{"6-seeds stub.shown", "inbox, a notice"},
		},
		"help": {{"001 cli.run", "without a command"}, {"001 cli.completion", "bash, zsh, fish, powershell"}},
		"template-dev-cycle": {
			{"002 phases", "by the log of a run"},
			{"9-one-tree workspace", "the shipped dev cycle: all that passed is on the run's branch, the checkout is as it was"},
			{"6-seeds guides", "the run it shows"},
			{"002 engines", "init --writer claude --reviewer codex"},
			{"002 planning", "the two files, and the tasks that are done"},
			{"002 plan-review", "sent back once, then passed"},
			{"002 execution", "T2 before T1, which waits for it"},
			{"002 execution.prompt", "what the agent of T2 was told"},
			{"002 code-review", "the feedback is a task"},
			{"002 scores", "the rubric in review.json"},
			{"002 finalize", "summary.md"},
			{"002 maxDuration", "max_duration=1s; the default stands in the spec"},
			{"002 maxReviewIterations", "the plan, and the code"},
			{"002 autoCommit", "commits of planning and of the end"},
			{"002 finalize.commit", "the last, headed by the summary"},
			{"002 createPR", "the step is skipped"},
			{"002 createPR.stub", "a repo without a remote: the command is not run, and its good end counts"},
			{"002 session", "the folders of both plannings"},
		},
		"template-pull-request": {
			{"002 createPR.gh", "a stand-in for gh: pushed, made once, seen by the forge's ref"},
			{"002 createPR.fails", "on main, without a commit, gh that refuses"},
		},
		"template-goal": {
			{"000 phases", "by the log of a run"},
			{"6-seeds guides", "the run it shows"},
			{"000 agents", "four roles in it"},
			{"000 plan-review", "sent back once, then passed; the feedback in the prompt"},
			{"000 plan-review.revisions", "the fourth rejection is the last"},
			{"000 skip_and_continue", "the default, by log"},
			{"000 skip_and_continue.shown", "status, its JSON and audit verify; not of another run"},
			{"000 reviews", "without that of the tasks"},
			{"000 execution", "T1, its cut T2, then T3"},
			{"000 fix-loop", "the prompt of the second code"},
			{"000 verification", "a score of 40 ends the try"},
			{"000 replan", "T2 has used its tries after the third"},
			{"000 success", "completed"},
			{"000 not-reached", "failed at a score of 40"},
			{"6-seeds unpassed", "skip_and_continue is told, to the end of the run"},
		},
		"let-through":   {{"6-seeds unpassed", "by a route, on_fail, on_exhausted, a person's word, and in the run of a task"}},
		"tolerant-join": {{"13-law tolerant", "by on_fail beside next_step, by a route for what was lost, with stubs too"}},
		"routes":        {{"13-law routes", "a loop of two rounds on every screen, one over an unchanged tree, one used up, a branch"}, {"13-law again", "the judge has its tries again, once"}},
		"waypoint":      {{"13-law waypoint", "a fork, a join with a gate"}},
		"template-goal-fails": {
			{"000 lower_threshold", "60 is let through"},
			{"000 abort.plan", "aborted at the last"},
			{"000 reviews", "without that of the plan"},
			{"000 fix-loop.max", "the last failure of the tests"},
			{"000 coder.blocked", "the try has failed, with its words"},
			{"000 coder.needs_clarification", "the try has failed, with its words"},
			{"000 tester", "failed, blocked, passed"},
			{"000 depth", "T1.1.1.1 is not cut again"},
			{"000 goal-iterations", "a second one"},
			{"000 max-iterations", "failed after the second"},
			{"000 failed-ratio", "aborted"},
			{"000 abort", "by a task's verification, by the goal's"},
			{"000 time-limit", "time_limit=1s"},
		},
		"template-goal-resume": {
			{"000 resume.paused", "the agent ends, the tester is not asked before resume"},
			{"000 resume.killed", "service, hosts and agents by kill -9, in the middle of T2"},
			{"000 resume.failed", "by retry, to its end"},
			{"000 resume.kept", "T1 is done in the file before T2 is"},
			{"000 resume.where", "by what was launched"},
			{"000 resume.reset", "T2 after the kill, T3.1 after the failure"},
			{"000 conversations", "the coder's after the kill, the planner's at the re-plan, the supervisor's at the end"},
			{"000 abort.user", "what runs is ended"},
			{"000 level.critical", "in the inbox, and on with a person's pass"},
			{"000 run.states", "running, paused, failed, completed, aborted"},
		},
		"stub": {
			{"6-seeds stub", "without a script, with the spec's own, with another"},
			{"6-seeds stub.script", "attempts, rounds, answers that are asked for again, files, faults with their place"},
			{"6-seeds stub.shown", "run, ls, status, the audit; a run without --stub is a real one"},
		},
		"template-release": {
			{"001 cli.push", "over a bare repo"},
			{"6-seeds guides", "the run it shows"},
			{"001 prompt.push", "as written"},
			{"6-seeds release", "over a bare repo: sent back with words, then committed, tagged, pushed"},
			{"6-seeds release.refused", "each of them"},
		},
		"demo":    {{"004 §5 question 5", "the record is readable, explained and verified"}, {"2-files layout", "what lies where after a run"}},
		"init":    {{"2-files gitignore", "signals/ is ignored by git"}},
		"signals": {{"004 §2 Signal.sentinel_file", "by file"}, {"004 §2 Signal.git_commit", "by commit"}, {"004 §2 Signal.pr_creation", "by pull request"}, {"004 §2 Signal.stdout_exit", "by exit code"}, {"1-language rule 3 sentinel_file", "the file at its value, below the worktree too"}, {"1-language rule 3 grace", "exit 0 without the signal"}, {"1-language rule 3 linger", "ended with its tree, the signal holds"}},
		"decide":  {{"1-language rule 5", "a late veto, and a veto within the window"}, {"004 §2 Retry.escalation", "used up: a person is asked"}, {"004 §2 Retry.escalation veto", "vetoed twice of two: a person is asked, though the reviewer passes"}, {"1-language routes", "routes to a step, an end, a person"}, {"1-language verdict", "conditions over the score decide"}, {"field asks 6", "a mute reviewer passes nothing"}, {"1-language rule 3 status", "blocked shows its question"}},
		"away":    {{"field asks early", "what is written while nobody serves is taken in"}, {"field asks answers", "a file that lay there before the round opened does not count"}, {"2-files decision file", "a pass file and a fail by command while no daemon runs"}},
		"broken":  {{"1-language faults", "every fault with its place; nothing is started"}},
		"daemon":  {{"field asks 9", "killed at a waiting gate, it waits there again"}},
		"drift":   {{"1-language rule 11", "an edited spec counts for the next run; a broken one harms no run"}},
		"held":    {{"3-engine one writer", "a second process is told who serves, and exits 75"}},
		"steer":   {{"field asks 12", "pause, resume, abort, retry"}},
		"signed": {{"4-trust signed", "each way in which it is none, with its reason; by file, by agent, once, also after a restart"}, {"4-trust approvers", "nobody set up: it fails closed"},
			{"4-trust self-approval", "who claimed, who committed"}},
		"checkpoint":    {{"4-trust checkpoint", "a cut journal and one written anew, by note and by file"}},
		"evidence":      {{"12-evidence statement", "with the daemon's key, as a note and a file"}, {"12-evidence verify", "over a bare repo: fails without, passes with"}},
		"triggers-many": {{"12-triggers many", "10,000 at once, over a crash"}},
		"triggers-push": {{"12-triggers push", "by the real git: paths, another branch, a crash"}},
		"triggers": {{"12-triggers armed", "a changed spec starts nothing until it is armed again"}, {"12-triggers there", "a file that lay there"}, {"12-triggers nothing changes", "a killed daemon, a touched file"},
			{"12-triggers full", "the fourth of three"}, {"12-triggers confirm", "the run waits for a person"}, {"12-triggers file", "a file is vars.file"},
			{"12-triggers list", "what is next, what was last, why nothing starts"}, {"12-triggers dry run", "the vars, and no run"}},
		"evidence-ways": {{"12-evidence no more", "running, not held, carried, merged, unjudged"}, {"12-evidence work", "by squash, rebase, merge and a forge"}, {"12-evidence cut", "with sums that are right"},
			{"12-evidence replaced key", "and one that others can read"}},
		"values": {{"2-files decision words", "the words of a pass, by a command, a text and a JSON file, reach the next step"}, {"1-language values", "vars, env, outputs by expression, when"}, {"1-language hooks", "a failing hook does no harm"}, {"1-language protect", "a person is asked"}},
		"branches": {{"field asks waiting", "a human gate holds up only what is downstream"}, {"004 §5 question 4", "a step waits for another workflow's"},
			{"1-language needs", "in whatever order they are started"}},
		"rejected": {{"2-files decision content", "a pass file that says fail passes nothing, in JSON, text or one word; an unknown key is refused"}, {"2-files signal 5", "kept with the reason, told; the run goes on"}, {"2-files signal 7", "too large, a link, a pipe"}, {"2-files signal 3", "keys that differ in case, another attempt, another token"}},
	}
}

// holds records what the scripts hold, as the test's own: if one of them fails, none of it counts.
func holds(t *testing.T) {
	t.Helper()
	for name, rules := range scriptsHold() {
		if _, err := os.Stat(filepath.Join("testdata/script", name+".txtar")); err != nil {
			t.Errorf("what %s holds: %v", name, err)
		}
		for _, r := range rules {
			conform.Part(t, name, r[0], r[1])
		}
	}
}

// cmdShown fails where the run that a template's guide shows is not what was just printed: each of its lines, in their order.
// A guide may leave lines out; the time and who asked differ.
func cmdShown(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) == 1, "shown TEMPLATE")
	page, err := os.ReadFile(filepath.Join(ts.Getenv("ROOT"), "docs/templates", args[0]+".md"))
	ts.Check(err)
	_, run, ok := strings.Cut(string(page), "\n## A run\n")
	need(ts, ok, "the guide has no section A run")
	plain := regexp.MustCompile(`\d\d:\d\d:\d\d|by \S+ \(command\)`)
	spaces := regexp.MustCompile(` +`)
	lines := func(text string) (out []string) {
		for line := range strings.Lines(text) {
			if regexp.MustCompile(`^\d\d:\d\d:\d\d `).MatchString(line) {
				out = append(out, spaces.ReplaceAllString(plain.ReplaceAllString(strings.TrimSpace(line), "-"), " "))
			}
		}
		return out
	}
	was := lines(ts.ReadFile("stdout"))
	for _, line := range lines(run) {
		at := slices.Index(was, line)
		if at < 0 {
			ts.Fatalf("the guide of %s shows, and the run does not say then: %s", args[0], line)
		}
		was = was[at+1:]
	}
}

// TestExperiments runs document 004's experiments, as they are shipped in examples/, with the real binary.
func TestExperiments(t *testing.T) {
	for name, rules := range map[string][][2]string{
		"exp-1": {{"004 §6 experiment 1", "carried out by hand"}, {"004 §2 Step.agent", "offered, not launched"}, {"004 §3 agent.launch", "interactive"}},
		"exp-2": {{"004 §6 experiment 2", "headless, from the spec"}, {"004 §3 agent.launch", "headless"}, {"004 §5 question 2", "no agent drives the run"}},
		"exp-3": {{"004 §6 experiment 3", "each of four signals starts the next step"}, {"004 §2 Signal", "each kind"}},
		"exp-4": {{"004 §6 experiment 4", "the loop works end to end"}, {"004 §2 Retry.read", "the second prompt has the feedback, the first has not"}},
		"exp-5": {
			{"004 §6 experiment 5.auto", "decided by the agent, nobody told"}, {"004 §2 Reviewer.auto", "on by itself, nobody told, on the record"},
			{"004 §6 experiment 5.notify", "told, and on after the window"}, {"004 §6 experiment 5.human", "told, and blocks until the pass file"},
			{"004 §2 Reviewer.human", "told, and nothing goes on"}, {"004 §6 experiment 5.rest", "the other branches pass meanwhile"},
			{"004 §2 Reviewer.per-gate", "three levels in one run"}, {"004 §4 shared", "while it waits, the files alone say what has passed and who is waited for"},
		},
		"exp-6": {{"004 §6 experiment 6", "Y-1 waits for X-2 and its output"}},
		"exp-7": {{"004 §6 experiment 7", "a scripted orchestrator, through sluice mcp"}},
	} {
		for _, r := range rules {
			conform.Part(t, name, r[0], r[1])
		}
	}
	shipped, err := filepath.Glob("../examples/exp-*")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/experiments/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range shipped {
		name := strings.Join(strings.SplitN(filepath.Base(dir), "-", 3)[:2], "-")
		if !slices.Contains(scripts, filepath.Join("testdata/experiments", name+".txtar")) {
			t.Errorf("%s is run by no test", dir)
		}
	}
	bin := binDir(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/experiments", Cmds: commands(), RequireUniqueNames: true, RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error { return setUp(env, bin) },
	})
}
