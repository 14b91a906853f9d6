package settings

import "strings"

// Meaning is what a key does.
type Meaning struct {
	Key     string // NAME stands for any agent or role
	Default string // in words, where the built-in value does not say it
	Does    string // with Markdown's marks for code
}

// Meanings has one row for each key of the settings, in the order in which a person reads them.
func Meanings() []Meaning {
	return []Meaning{
		{"agents.NAME.command", "its own name for claude, codex and opencode",
			"a list; `${{role}}`, `${{model}}` and `${{prompt_file}}` are replaced by their values"},
		{"agents.NAME.prompt_via", "stdin",
			"how it gets the prompt: `stdin`, `arg` (the last argument) or `file` (its path, in place of " +
				"`${{prompt_file}}`, else last)"},
		{"agents.NAME.format", "text",
			"`claude`, `codex`, `opencode`: read its output as theirs and add their arguments; `prompt_via` is then `stdin`"},
		{"agents.NAME.env", "those of its program", "variables of the daemon that it gets: names, or a prefix and `*`"},
		{"roles.NAME.agent", "that of `\"*\"`: claude",
			"one agent, or several in turn: for each attempt, each review, or each iteration of a task list. A relaunch " +
				"keeps its agent"},
		{"roles.NAME.model", "none", "the value of `${{model}}`"},
		{"roles.NAME.args", "those of `\"*\"`, else none",
			"a list, appended to the command of each agent that plays the role"},
		{"roles.NAME.prompt_file", "`prompts/NAME.md`, else built in",
			"the role's prompt, below `.workflow/`, else below the root"},
		{"roles.NAME.timeout", "`timeout`", "how long an attempt may take"},
		{"roles.NAME.idle_timeout", "`idle_timeout`", "how long an attempt may print nothing"},
		{"roles.NAME.on", "that of `\"*\"`, else none",
			"labels of a worker: the role's steps run on one that has all of them; see workers.md"},
		{"roles.NAME.restarts", "`restarts`", "relaunches after infrastructure failures and inconclusive reviews"},
		{"roles.NAME.env", "none", "variables of the daemon that its agents get, as for an agent"},
		{"roles.NAME.max_cost_usd", "that of `\"*\"`, else `budget.attempt`",
			"what one attempt, or one round's reviewer, may cost"},
		{"roles.NAME.max_tokens", "that of `\"*\"`, else `budget.attempt`",
			"the tokens that one attempt, or one round's reviewer, may use"},
		{"roles.NAME.network", "that of `\"*\"`, else `web`",
			"what its launches can reach: `web`, `none`, `host`, or names of hosts"},
		{"sandbox.mode", "", "whether launches are sandboxed: `auto` (where it is possible), `on` or `off`"},
		{"sandbox.read", "none", "folders that a launch sees besides the system and the tools on PATH: `~/…` or absolute"},
		{"sandbox.write", "none", "folders that it may also write to"},
		{"sandbox.max_home_gb", "",
			"disk space in GB for all private homes and git folders of a run; above it, a launch at work is ended as failed. " +
				"0 = no limit"},
		{"max_parallel", "", "steps and reviews of a repo at a time"},
		{"max_agents", "", "how many agents may run at once, over all repos"},
		{"trust", "", "the minimum trust level of an answer; `auto` requires none and shows each answer's level"},
		{"veto_window", "", "how long a pass can be vetoed at gates that set no window"},
		{"notify.desktop", "", "notices on the desktop"},
		{"notify.command", "none",
			"a list; gets `SLUICE_NOTICE_{ID,KIND,TITLE,BODY,REPO,RUN,GATE,URL,URGENCY,ESCALATED}`, and the same as " +
				"JSON on standard input"},
		{"notify.webhook.url", "none", "called for each notice, and retried"},
		{"notify.webhook.method", "POST", "the method of the request"},
		{"notify.webhook.secret_env", "none", "the daemon's variable with the secret that signs the request"},
		{"notify.webhook.headers.NAME", "none", "a header of the request"},
		{"notify.webhook.body", "the notice as JSON", "the body of the request, a template"},
		{"notify.terminal", "the first one found",
			"a list: opens a terminal that runs the words after it, for the buttons Reject and Show: `[kitty, --]`"},
		{"notify.remind", "",
			"when a gate that waits for you first reminds you; each later wait doubles, up to a day; 0 = never"},
		{"notify.escalate.after", "0 = never", "the channels in `to` get a gate's notices only from this many reminders on"},
		{"notify.escalate.to", "none", "the channels that wait: `desktop`, `command`, `webhook`"},
		{"web.listen", "when `sluice web` asks, `127.0.0.1:7467`",
			"where the page listens from the daemon's start: `host:port`"},
		{"web.name", "none: this machine only", "the domain name by which other devices reach the page, over TLS"},
		{"web.cert", "none", "the certificate of `web.name`: a file in PEM, with an absolute path"},
		{"web.key", "none", "the private key of that certificate"},
		{"rescan", "", "how often the inbox is read without a hint"},
		{"grace", "", "wait after exit 0 without the signal"},
		{"linger", "", "wait after the signal without an exit"},
		{"settle", "", "how long a text must be unchanged to count as complete"},
		{"kill_after", "", "from TERM to KILL"},
		{"pr_poll", "", "how often a forge is asked"},
		{"timeout", "", "how long an attempt may take"},
		{"idle_timeout", "0 = none", "how long an attempt may print nothing"},
		{"restarts", "", "relaunches after infrastructure failures and inconclusive reviews"},
		{"budget.attempt.max_cost_usd", "0 = none", "for one attempt of any role that sets nothing else"},
		{"budget.attempt.max_tokens", "0 = none", "likewise, in tokens"},
		{"budget.day.max_cost_usd", "0 = none", "for all repos of the daemon, from 00:00 to 00:00 of its clock"},
		{"budget.day.max_tokens", "0 = none", "likewise, in tokens"},
		{"budget.day.max_launches", "0 = none", "likewise, launches of agents"},
		{"budget.day.max_duration", "0 = none", "likewise, running time of agents; concurrent ones add up"},
	}
}

// MeaningOf returns the row of a key, whose parts may contain dots; the zero value if there is none.
func MeaningOf(parts []string) Meaning {
	for _, m := range Meanings() {
		if want := strings.Split(m.Key, "."); len(want) == len(parts) && covers(want, parts) {
			return m
		}
	}
	return Meaning{}
}
