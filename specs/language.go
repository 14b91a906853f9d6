package specs

import "gopkg.in/yaml.v3"

// The types below define the language. A field's `key` is its name in the file, `doc` is what an
// editor shows, `also` names it in other tools, `need` marks required keys, and `enum` lists a
// text's permitted words. The reader (read.go) and the JSON Schema (schema.go) use them.

// place has the nodes of a mapping and its keys.
type place struct {
	Node *yaml.Node
	Keys map[string]*yaml.Node
}

// key returns the node of an existing key, or else the mapping's.
func (p place) key(name string) *yaml.Node {
	if n := p.Keys[name]; n != nil {
		return n
	}
	return p.Node
}

func (p *place) stand(at place) { *p = at }

func (p place) has(name string) bool { return p.Keys[name] != nil }

type specDoc struct {
	place
	Workflow *workflowDoc `key:"workflow" need:"yes" doc:"The workflow itself: its id, vars and limits."`
	On       *onDoc       `key:"on" also:"triggers,trigger,when" doc:"What starts runs by itself, once a person has armed it: sluice triggers arm WORKFLOW."`
	Steps    []*stepDoc   `key:"steps" also:"jobs,tasks,stages,nodes" need:"yes" doc:"The work, step by step. The first one starts the run; so does each with needs: [] that nothing else leads to."`
	Gates    []*gateDoc   `key:"gates" also:"checks,approvals,reviews" doc:"The gates: each judges a step and decides where its work goes."`
}

type workflowDoc struct {
	place
	ID           ident      `key:"id" need:"yes" doc:"The workflow's id. The file is named after it: .workflow/specs/<id>.yaml."`
	Name         scalar     `key:"name" doc:"A name for people. The id, if absent."`
	Description  scalar     `key:"description" doc:"What the workflow does, in a sentence or two."`
	ContextFiles pathList   `key:"context_files" doc:"Files that every agent of this workflow must read."`
	Vars         varsDoc    `key:"vars" also:"inputs,params,parameters,arguments,variables" doc:"Values that a run takes: name: default, or name: {required: true, description: …}. The default gives the type."`
	Workspace    scalar     `key:"workspace" enum:"checkout|run" doc:"Where steps without a worktree work. checkout (default): in your checkout. run: in a worktree of the run's own, on the branch sluice/<run>; sluice land lands the work."`
	OnDone       *onDoneDoc `key:"on_done" doc:"How the work of a completed run with its own worktree (workspace: run) lands."`
	Limits       *limitsDoc `key:"limits" doc:"The run's circuit breakers. Each is N, or {max: N, on_hit: ABORTED | FAILED | human}."`
	Needs        textList   `key:"needs" doc:"Steps of other workflows (workflow/step) that the run waits for before its first step."`
	Hooks        *hooksDoc  `key:"hooks" doc:"Commands that get the run's facts in their environment. A failing hook is recorded, not fatal."`
	Setup        *setupDoc  `key:"setup" doc:"Prepares files that checks need and git ignores, such as dependencies."`
	Protect      pathList   `key:"protect" doc:"Globs: a step that changed one of these files sends its next gate to a human, whatever the gate's level."`
}

// onDoc is what starts runs.
type onDoc struct {
	place
	Schedule  []*scheduleDoc `key:"schedule" also:"cron,timer" doc:"Times: a list of {cron: …}."`
	Files     pathList       `key:"files" also:"file,paths,watch" doc:"Globs, relative to the repo's root: a new or changed file. Its path is file."`
	Push      *pushDoc       `key:"push" doc:"A commit that arrives on a branch, here or at the remote: push.branch, push.commit."`
	Issue     *issueDoc      `key:"issue" also:"issues" doc:"An open issue of the forge, by gh: issue.number, title, body, url, author, labels."`
	Webhook   *webhookDoc    `key:"webhook" also:"http,hook" doc:"A signed POST to the daemon's page, at /hook/REPO/WORKFLOW. Its JSON is event. webhook: {} needs no more."`
	With      givenDoc       `key:"with" also:"vars,inputs" doc:"Values of the run's vars: texts with ${{ }} over file, push, issue, event and time. A var named like one of these has it without with."`
	Overlap   scalar         `key:"overlap" also:"concurrency" enum:"queue|skip|parallel|replace" doc:"While a run of the workflow is live: queue (default): the new one waits. skip: it does not start. parallel: it works beside. replace: runs that triggers started are aborted for it."`
	MaxPerDay countDoc       `key:"max_per_day" doc:"Runs that triggers start within 24 hours. What else fires waits until these are over; a schedule's minute is skipped. 100 if absent."`
	Confirm   scalar         `key:"confirm" also:"approve" doc:"true: each run waits for a person before its first step. Absent: runs for webhooks do, and for issues of people who cannot write to the repo."`
}

type scheduleDoc struct {
	place
	Cron     scalar `key:"cron" need:"yes" doc:"Minute, hour, day of month, month, day of week, as 0 3 * * 1-5; or @hourly, @daily, @weekly, @monthly, @yearly."`
	Timezone scalar `key:"timezone" also:"tz,zone" doc:"The zone whose clock counts, as Europe/Berlin. UTC if absent."`
	CatchUp  scalar `key:"catch_up" enum:"one|all|none" doc:"Times that passed while nobody was there: one (default) = the newest fires, all = each, at most 100, none."`
}

type pushDoc struct {
	place
	Branches textList `key:"branches" doc:"Branches, or globs of them. All, if absent."`
	Paths    pathList `key:"paths" doc:"Globs: only commits that change such a file. Commits that were not fetched are not looked at."`
}

type issueDoc struct {
	place
	Labels   textList `key:"labels" also:"label" doc:"All of these labels."`
	Assignee scalar   `key:"assignee" doc:"Whose issues: a login of the forge, or me."`
}

type webhookDoc struct{ place }

// onDoneDoc lands the work.
type onDoneDoc struct {
	place
	Land          scalar   `key:"land" enum:"keep|squash|merge|ff|pr" doc:"keep (default): sluice land lands the work. squash, merge, ff: it goes onto the branch that was checked out when the run began. pr: it is pushed, and a pull request is opened, or brought up to date, with gh."`
	Pull          *pullDoc `key:"pr" doc:"How the pull request is opened, at land: pr or for a gate that the forge judges."`
	CloseWorktree scalar   `key:"close_worktree" doc:"true: the run's worktree is removed after landing. Its branch stays."`
}

// pullDoc opens a pull request.
type pullDoc struct {
	place
	Labels    textList `key:"labels" doc:"Labels that it gets."`
	Reviewers textList `key:"reviewers" doc:"Who is asked to review it: logins, or ORG/TEAM."`
	Draft     scalar   `key:"draft" doc:"true: it is a draft until the work stands at the workflow's last gate."`
}

type limitsDoc struct {
	place
	MaxDuration    *spanLimit   `key:"max_duration" doc:"The total time of steps, reviews and windows. Waiting for a human does not count."`
	MaxSteps       *countLimit  `key:"max_steps" doc:"Step attempts in all."`
	MaxFailedRatio *numberLimit `key:"max_failed_ratio" doc:"Hit when more of a list's tasks have failed (0 to 1)."`
	MaxCostUSD     *numberLimit `key:"max_cost_usd" doc:"The most the agents may cost, in US dollars."`
	MaxTokens      *numberLimit `key:"max_tokens" doc:"Tokens the agents may use."`
	Roles          *rolesDoc    `key:"roles" doc:"The budget of one role's agents over the run: ROLE: {max_tokens, max_cost_usd, max_launches, max_duration}."`
	MaxSameFailure *countLimit  `key:"max_same_failure" doc:"How often the same failure may come over an unchanged tree. A name under routes is not a failure. 3 if absent, and then a human is asked."`
}

// roleDoc is what one role may use in a run.
type roleDoc struct {
	place
	MaxDuration *spanLimit   `key:"max_duration" doc:"The time its agents may run; agents that run at the same time count each."`
	MaxLaunches *countLimit  `key:"max_launches" doc:"Launches of its agents, including those after a failure."`
	MaxCostUSD  *numberLimit `key:"max_cost_usd" doc:"The most its agents may cost, in US dollars."`
	MaxTokens   *numberLimit `key:"max_tokens" doc:"Tokens its agents may use."`
}

type hooksDoc struct {
	place
	AfterStep commandDoc `key:"after_step" doc:"After each step attempt: a list of arguments, or a text for sh -c."`
	AfterTask commandDoc `key:"after_task" doc:"After each try of a task of for_each, when the task file has its result."`
	AfterRun  commandDoc `key:"after_run" doc:"After the run has ended."`
	Notify    scalar     `key:"notify" doc:"true: you are notified of each step that passes its gates, and of each that a gate does not pass."`
}

// setupDoc creates what a checkout of a commit lacks.
type setupDoc struct {
	place
	Run      commandDoc `key:"run" need:"yes" doc:"The command: a list of arguments, or a text for sh -c. It runs in a checkout of the commit from which the attempt began."`
	Files    pathList   `key:"files" need:"yes" doc:"Files or globs that its result depends on, such as lock files: it runs again if one of them differs."`
	Provides pathList   `key:"provides" need:"yes" doc:"The folders and files that it creates. Reviewers and checks see them read-only."`
}

type stepDoc struct {
	place
	ID          ident       `key:"id" need:"yes" doc:"The step's id. Steps and gates share one name space, in which case is ignored."`
	Name        scalar      `key:"name" doc:"A label for people. The id, if absent."`
	Agent       *agentDoc   `key:"agent" doc:"Who does the step."`
	Run         commandDoc  `key:"run" also:"command,cmd,script,shell,exec" doc:"A command instead of an agent: a list of arguments, or a text for sh -c. An agent beside it sets worktree, branch and the role whose environment it gets."`
	Workflow    scalar      `key:"workflow" doc:"A child run of this workflow."`
	Vars        givenDoc    `key:"vars" doc:"Beside workflow: values of its vars, as texts with ${{ }} over the names of this workflow. A var without a value takes the var of the same name here."`
	ForEach     *forEachDoc `key:"for_each" also:"foreach,matrix,loop,with_items" doc:"This step for each task of a list."`
	Env         envDoc      `key:"env" also:"environment" doc:"Environment variables of the step's process. SLUICE_* are reserved for the engine."`
	On          labelsDoc   `key:"on" also:"runs_on,labels,label,tags,worker,workers,machine" doc:"Labels of a worker: the step's agent, or its command, runs on one that has all of these, and those that the settings give its role (docs/workers.md)."`
	Inputs      pathList    `key:"inputs" also:"input" doc:"Files or globs the step reads, from its worktree, else from the root. If a plain one is missing, the attempt fails before its launch."`
	Outputs     outputsDoc  `key:"outputs" also:"artifacts,produces,output" doc:"Files that the step must create. path: expression = the engine writes the file."`
	Setup       *setupDoc   `key:"setup" doc:"Replaces the workflow's setup for the reviewers and checks of this step."`
	Criteria    criteriaDoc `key:"success_criterion" also:"success_criteria,check,done_when,test" doc:"How to know that the step is done: \"<command> exits 0\", \"file <path> exists[ and is non-empty]\", {run: …}, {file: …, non_empty: true}, or a list of them; folder: true beside run or file: judged in the step's own folder, with what git ignores. Any other text goes to the reviewer."`
	Answer      answerDoc   `key:"answer" doc:"JSON Schema of the step's final structured answer: a file's path, or the schema itself. Beside workflow: an expression over the names of the child run, whose value is the step's answer."`
	Timeout     spanDoc     `key:"timeout" also:"timeout_minutes,timeout_seconds,time_limit" doc:"How long an attempt may take, as 30m. 2h if absent."`
	IdleTimeout spanDoc     `key:"idle_timeout" doc:"How long the agent may be silent."`
	Restarts    countDoc    `key:"restarts" doc:"Launches after an infrastructure failure. 1 if absent."`
	Signal      *signalDoc  `key:"signal" doc:"How the step reports that it is done. Absent: stdout_exit where the daemon launches, else sentinel_file."`
	Gate        scalar      `key:"gate" doc:"The gate that judges the step and decides what comes next."`
	NextStep    targetsDoc  `key:"next_step" also:"next,goto,then,on_success" doc:"Instead of a gate: the next step, a list of steps, or an end (DONE, FAILED, ABORTED)."`
	OnFail      scalar      `key:"on_fail" also:"on_failure,on_error,catch" doc:"Beside next_step: where the work goes when the step fails, a step or an end; the next step itself lets the join go on without it. FAILED if absent."`
	Needs       textList    `key:"needs" also:"depends_on,dependencies,after,requires" doc:"Steps that must have passed; other/Y-2 = in the newest run of the workflow other. [] = starts at once."`
	When        exprDoc     `key:"when" also:"if,condition,only_if" doc:"A condition, evaluated each time the work arrives. False = the step is skipped, and the work goes on as after a pass."`
}

type agentDoc struct {
	place
	Type     scalar   `key:"type" also:"role" doc:"The role. The settings map roles to agents, models and prompt templates."`
	Launch   scalar   `key:"launch" enum:"headless|interactive|subagent" doc:"headless (default): the daemon starts it. interactive, subagent: the step is offered and waits for its signal."`
	Worktree scalar   `key:"worktree" doc:"The folder the step works in, relative to the repo's root. Absent = the root."`
	Branch   scalar   `key:"branch" doc:"The branch from which a missing worktree is created. Absent = a branch with the folder's name."`
	Context  pathList `key:"context" doc:"More files this agent reads."`
	Prompt   scalar   `key:"prompt" also:"instructions,instruction,task,goal,message" doc:"The task."`
	Session  scalar   `key:"session" doc:"Continue the run's conversation of this name, if the agent can."`
	Reads    scalar   `key:"reads" doc:"true: the step only reads, in a read-only checkout of its folder's last taken tree. It occupies no folder, so any number run at once. Its result is its answer, its signal and outputs written below .workflow/ (path: expression)."`
}

type forEachDoc struct {
	place
	Tasks       tasksDoc `key:"tasks" need:"yes" doc:"The task file; or path: expression = the list is written there from the value when the step begins. The path names the run, with ${{run}}."`
	MaxParallel countDoc `key:"max_parallel" doc:"Tasks at a time."`
	Attempts    countDoc `key:"attempts" doc:"Tries per task."`
	MaxTries    countDoc `key:"max_tries" doc:"Tries of all tasks together. When they are used up, the list ends and its gate decides; if the gate sends it back, it fails."`
	OnExhausted scalar   `key:"on_exhausted" doc:"A step for a task that has used its tries."`
	MaxDepth    countDoc `key:"max_depth" doc:"How deep tasks may be replaced by new tasks."`
	OnMissing   scalar   `key:"on_missing" doc:"A step for a missing task file."`
	OnInvalid   scalar   `key:"on_invalid" doc:"A step for an invalid task file."`
}

type signalDoc struct {
	place
	Type  scalar `key:"type" need:"yes" enum:"sentinel_file|git_commit|pr_creation|stdout_exit" doc:"sentinel_file: a JSON file appears. git_commit: a commit has the marker. pr_creation: a pull request appears. stdout_exit: the process exits 0."`
	Value scalar `key:"value" doc:"sentinel_file: the file, .workflow/signals/<step-id>-done.json if absent. git_commit: the marker, [GATE:<gate-id>] if absent. pr_creation: the branch that the pull request comes from, the step's if absent. stdout_exit: the exit code that means done, which is 0."`
}

type gateDoc struct {
	place
	ID          ident        `key:"id" need:"yes" doc:"The gate's id. Steps and gates share one name space, in which case is ignored."`
	Name        scalar       `key:"name" doc:"A label for people. The id, if absent."`
	When        exprDoc      `key:"when" doc:"A condition. False = the gate passes unjudged."`
	Reviewer    *reviewerDoc `key:"reviewer" also:"judge,review,approver,evaluator" need:"yes" doc:"Who evaluates the gate."`
	Restarts    countDoc     `key:"restarts" doc:"Reviewer launches after an inconclusive one. 1 if absent."`
	Answer      answerDoc    `key:"answer" doc:"JSON Schema of the reviewer's answer, if it is more than a verdict; at level human, of the answer that a person's pass must contain."`
	Outputs     outputsDoc   `key:"outputs" doc:"Files the engine writes from the review: path: expression."`
	Verdict     verdictDoc   `key:"verdict" doc:"outcome: condition, the first true one wins; or one expression whose value is the outcome's name. Absent: the reviewer's verdict."`
	VetoWindow  spanDoc      `key:"veto_window" doc:"How long a notify gate pauses for a veto, as 30s."`
	Timeout     spanDoc      `key:"timeout" doc:"How long a human may take; with forge, how long the forge may take until a human is asked."`
	OnTimeout   scalar       `key:"on_timeout" doc:"After the time-out: remind (default), fail, or an end. Never pass."`
	OnPass      *onPassDoc   `key:"on_pass" also:"on_success,on_approve,on_approval,then" need:"yes" doc:"Where a pass leads."`
	OnFail      *onFailDoc   `key:"on_fail" also:"on_failure,on_reject,on_rejection,on_error" doc:"Where a failure leads. Absent: back to the step judged."`
	Routes      routesDoc    `key:"routes" doc:"outcome: where to: a step, an end, or human. Such an outcome is not a failure: each that leads back has its own count."`
	MaxFailures countDoc     `key:"max_failures" doc:"From this failure on, on_exhausted applies instead of going back. Each name under routes is counted separately. 3 if absent; 0 reads as 1."`
	MaxRetries  countDoc     `key:"max_retries" also:"retries,retry,attempts,max_attempts,max_iterations" doc:"Another name for max_failures: max_retries: 2 asks at the second failure too. A gate has one of the two."`
	OnExhausted scalar       `key:"on_exhausted" doc:"After max_failures: human (default), pass, a step (once; when it has passed, the counts restart) or an end."`
}

type reviewerDoc struct {
	place
	Level     scalar     `key:"level" need:"yes" enum:"auto|notify|human" doc:"auto: the verdict decides. notify: the verdict decides, and a human is notified and may veto. human: a human decides."`
	AgentType scalar     `key:"agent_type" also:"agent,role" doc:"A role: an agent reviews."`
	Run       commandDoc `key:"run" doc:"A command reviews: exit 0 = pass, else fail, its output the feedback."`
	From      scalar     `key:"from" enum:"step" doc:"step: the step's own report and answer decide."`
	Forge     textList   `key:"forge" doc:"The forge judges: [checks], [reviews] or both. The commit is pushed and its pull request opened first. checks: all checks of the commit are green. reviews: somebody with write access, or one of approvers, has approved the commit, and nobody wants changes."`
	Prompt    scalar     `key:"prompt" doc:"What to look for: instructions for the agent of agent_type, or, at level human, for the person who is asked."`
	Session   scalar     `key:"session" doc:"Continue the run's conversation of this name, if the agent can."`
	Rubric    textList   `key:"rubric" doc:"The criteria to score, each 0 to 100 in scores; score is their mean."`
	Approvers textList   `key:"approvers" doc:"Who may decide: names whose signatures count, and forge:LOGIN for an account at the forge, whose /sluice comments on the pull request count."`
	Trust     scalar     `key:"trust" enum:"auto|file|sandbox|forge|signed" doc:"The lowest trust level that an answer needs."`
}

type onPassDoc struct {
	place
	NextStep targetsDoc `key:"next_step" also:"next,goto,step" doc:"A step, a list of steps (fan out), or an end: DONE, FAILED, ABORTED."`
	NextGate scalar     `key:"next_gate" doc:"Another gate that judges the same step."`
}

type onFailDoc struct {
	place
	NextStep     scalar `key:"next_step" also:"next,goto,step" doc:"A step or an end. Absent: back to the step judged."`
	RetryContext scalar `key:"retry_context_path" doc:"Where the feedback is written; {n} is which failure. .workflow/retry-context/<gate-id>-attempt-{n}.md if absent."`
}
