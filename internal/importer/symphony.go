package importer

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

func seemsSymphony(d document) bool {
	return d.md && (get(d.root, "tracker") != nil || get(d.root, "codex") != nil || get(d.root, "polling") != nil)
}

// symphonyTable says what becomes of each key of a WORKFLOW.md.
func symphonyTable() []construct {
	const intake = "sluice watches no tracker here: start a run for each issue, with its vars"
	return slices.Concat(
		deep("tracker", "tracker.provider", "polling", "workspace", "hooks", "agent", "codex"),
		left(intake, "tracker.kind", "tracker.project_slug", "tracker.endpoint", "tracker.api_key", "tracker.assignee",
			"tracker.provider", "tracker.required_labels", "tracker.active_states", "tracker.terminal_states",
			"polling.interval_ms"),
		near("each run has a worktree of its own below .workflow/worktrees", "workspace.root"),
		left("a run of ours begins with a worktree of this repo: nothing has to be cloned", "hooks.after_create"),
		taken("hooks.before_run", "hooks.timeout_ms", "agent.max_turns", "codex.turn_timeout_ms", "codex.stall_timeout_ms"),
		left("a command after each attempt is yours to decide: `hooks.after_step`", "hooks.after_run"),
		left("`sluice clean` removes worktrees", "hooks.before_remove"),
		left("`max_parallel` in config.yaml", "agent.max_concurrent_agents", "agent.max_concurrent_agents_by_state",
			"agent.max_retry_backoff_ms"),
		near("the role codex: `roles` in config.yaml says which command plays it", "codex.command"),
		left("permissions are yours to decide: nothing of them is imported", "codex.approval_policy", "codex.thread_sandbox",
			"codex.turn_sandbox_policy"),
		left("ours has no such limit", "codex.read_timeout_ms"),
		left("it is its own server's matter", "server", "observability"),
	)
}

func readSymphony(r *reader, d document) {
	f := r.begin(d, d.root, "symphony", "")
	s := &step{id: "work", role: "codex", session: "issue"}
	words := regexp.MustCompile(`\{\{-?\s*([^{}]*?)\s*-?\}\}`)
	odd := strings.Contains(d.body, "{%")
	s.prompt = strings.TrimSpace(fill(d.body, words, func(m []string) (string, bool) {
		ref, filter, filtered := strings.Cut(m[1], "|")
		odd = odd || filtered && filter != ""
		switch ref = strings.TrimSpace(ref); {
		case ref == "attempt":
			return embed("attempt"), true
		case regexp.MustCompile(`^issue\.[a-z_]+$`).MatchString(ref):
			name := varName(strings.ReplaceAll(ref, ".", "_"))
			v := variable{name: name, description: "of the tracker's issue"}
			if name != "issue_title" && name != "issue_identifier" {
				v.value = quoted("")
			}
			return embed(f.addVar(v)), true
		}
		odd = true
		return "", false
	}))
	s.prompt = cmp.Or(s.prompt, "You are working on an issue of the tracker.")
	why := ""
	if odd {
		why = "what stands between {% %}, and filters, are not evaluated: the agent reads them as they are"
	}
	r.body(d, s, why)
	s.timeout, s.idle = milliseconds(at(d.root, "codex", "turn_timeout_ms")), milliseconds(at(d.root, "codex",
		"stall_timeout_ms"))
	r.symphonyLoop(d, f, s)
	r.symphonyHooks(d, f, s)
	r.account(d.root, "", "", &f.notes)
}

// symphonyLoop goes on with the agent's turns until it says that the work is done.
func (r *reader) symphonyLoop(d document, f *flow, s *step) {
	turns := cmp.Or(whole(at(d.root, "agent", "max_turns"), 1, 1000), 20)
	s.prompt += "\n\nSay `done: true` in your answer when nothing is left for you to do on this issue, " +
		"else `done: false`: " +
		"then you go on in this conversation."
	s.answer = objectSchema(field{"done", kindSchema("boolean")}, field{"summary",
		textSchema("what was done, and what is left")})
	f.judge(s, &gate{id: "turns", level: "auto", fromStep: true, verdict: []entry{{"again",
		"not answer.done"}, {"pass", "true"}},
		pass: []string{"DONE"}, routes: []entry{{"again", s.id}}, maxFailures: turns,
		notes: []string{"there the issue's state ends the turns; here the agent says so, and a person is asked " +
			"after the last"}})
	f.plays(s, map[string]string{"done": "true"})
	f.steps = append(f.steps, s)
}

// symphonyHooks makes a step of what runs before the agent. The other hooks are comments.
func (r *reader) symphonyHooks(d document, f *flow, s *step) {
	if n := at(d.root, "hooks", "before_run"); str(n) != "" {
		before := &step{id: "before-run", next: []string{s.id}, timeout: milliseconds(at(d.root, "hooks", "timeout_ms"))}
		command, got := r.shellFile(f, "before-run", str(n), noRefs)
		if got.why != "" {
			r.leave(n, "the script is not run (%s): it is in %s", got.held(), command)
			f.byHand(before, "Symphony runs a script here that sluice does not. Do by hand what it does.")
		} else {
			before.shell = command
		}
		f.steps = append([]*step{before}, f.steps...)
	}
	for _, name := range []string{"after_create", "after_run", "before_remove"} {
		if n := at(d.root, "hooks", name); str(n) != "" {
			f.notes = append(f.notes, "hooks."+name+" was: "+strings.Join(strings.Fields(str(n)), " "))
		}
	}
}
