package engine

import (
	"encoding/json"
	"time"
)

// Event is what the world told us. Its kind is a string in the journal and never changes its meaning.
type Event interface{ EventKind() string }

// Actor is who did something and how we know: Trust is one of file, sandbox, signed.
type Actor struct {
	Who   string `json:"who,omitempty"`   // the system's user name
	Via   string `json:"via,omitempty"`   // file, command, terminal, desktop, page, daemon
	Trust string `json:"trust,omitempty"` // what stood between an agent and this word
	Key   string `json:"key,omitempty"`   // signed: the fingerprint of the key; Who is its principal then
}

// ViaMCP is how an orchestrating agent says something: in its person's account, and not as that person.
const ViaMCP = "mcp"

// Signed is what a person signed, and whose signature it was. That it holds was checked before the event was made.
type Signed struct {
	Names   []string  `json:"names"` // of who signed: the principal, then other names of the same person
	Key     string    `json:"key"`   // fingerprint
	Run     string    `json:"run"`
	Gate    string    `json:"gate"`
	Round   int       `json:"round"`
	Outcome string    `json:"outcome"`
	Digest  string    `json:"digest,omitempty"` // of what was reviewed
	Nonce   string    `json:"nonce"`
	Expires time.Time `json:"expires"`

	Answer json.RawMessage `json:"answer,omitempty"`
}

// Configured: the settings the engine goes by were read, at start and on SIGHUP.
type Configured struct {
	Config Config `json:"config"`
}

// RunRequested: somebody starts a workflow.
type RunRequested struct {
	Workflow string            `json:"workflow"`
	Source   string            `json:"source"`         // the spec's text, whole
	Digest   string            `json:"digest"`         // hex SHA-256 of Source
	File     string            `json:"file,omitempty"` // hex SHA-256 of the spec's file, of which Source was made
	Vars     map[string]any    `json:"vars,omitempty"`
	Parallel bool              `json:"parallel,omitempty"` // beside a live run of the workflow
	Paused   bool              `json:"paused,omitempty"`
	Trees    map[string]string `json:"trees,omitempty"` // worktree as written (cleaned) -> key: real path of its checkout's top level
	Stubs    json.RawMessage   `json:"stubs,omitempty"` // what stand-ins do in place of the run's agents; absent: it is a real run
	By       Actor             `json:"by"`
}

// FileSeen: a whole (or hopeless) file lies in an inbox.
type FileSeen struct {
	Name    string    `json:"name"`            // base name
	Dir     string    `json:"dir,omitempty"`   // "" for signals/ itself, else the run whose folder it lies in
	Place   string    `json:"place,omitempty"` // "" for the root's inbox, else the worktree's (as its key)
	Of      string    `json:"of,omitempty"`    // the launch whose own inbox it lay in: it is that launch's word, and no person's
	ID      string    `json:"id"`              // identity of the file: device, inode, size, digest
	Digest  string    `json:"digest,omitempty"`
	Written time.Time `json:"written"`            // mtime
	TokenOf string    `json:"token_of,omitempty"` // the launch whose token the file bears; "?" = of none that lives; "" = it bears none
	By      Actor     `json:"by"`

	Sentinel    *Sentinel `json:"sentinel,omitempty"` // as a step's word; nil where it cannot be read so
	SentinelBad string    `json:"sentinel_bad,omitempty"`
	Human       *HumanSay `json:"human,omitempty"` // as a person's word
	HumanBad    string    `json:"human_bad,omitempty"`
	DigestNow   string    `json:"digest_now,omitempty"` // see Answered
}

// Sentinel is what a step says of itself.
type Sentinel struct {
	Step     string          `json:"step,omitempty"`
	Status   string          `json:"status,omitempty"` // done (also when absent), failed, blocked
	Summary  string          `json:"summary,omitempty"`
	Question string          `json:"question,omitempty"`
	Options  []string        `json:"options,omitempty"`
	Run      string          `json:"run,omitempty"`
	Attempt  int             `json:"attempt,omitempty"`
	Launch   int             `json:"launch,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// HumanSay is what a person's file says beside its name.
type HumanSay struct {
	Text  string `json:"text,omitempty"`
	Round int    `json:"round,omitempty"`
	Run   string `json:"run,omitempty"`
	By    string `json:"by,omitempty"`

	Gate    string `json:"gate,omitempty"`    // as it says itself: it has to be that of its name
	Outcome string `json:"outcome,omitempty"` // so too

	Answer json.RawMessage `json:"answer,omitempty"` // see Answered

	Proven
}

// Proven is what a signed answer has beside its words.
type Proven struct {
	Signed   *Signed `json:"signed,omitempty"`
	Proof    string  `json:"proof,omitempty"`    // the text with its signature, as it came
	Unproven string  `json:"unproven,omitempty"` // why its signature does not count: then the answer does not either
}

// CommitSeen: a commit that bears an attempt's marker was first seen after the attempt began.
type CommitSeen struct {
	Run     string `json:"run"`
	Step    string `json:"step"`
	N       int    `json:"n"`
	K       int    `json:"k"`
	SHA     string `json:"sha"`
	Author  string `json:"author"` // name, e-mail and author date: the same for a cherry-picked double and an amended twin
	Subject string `json:"subject,omitempty"`
	// Makers are the names and e-mail addresses of its author and its committer, as it says itself.
	Makers []string `json:"makers,omitempty"`
}

// PullSeen: a pull request appeared whose head is the step's.
type PullSeen struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	N    int    `json:"n"`
	K    int    `json:"k"`
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
}

// Polled: the refs (or the forge) were looked through for the launch's commit or pull request, beginning at Began; what
// there was came as events before this one.
type Polled struct {
	Run   string    `json:"run"`
	Step  string    `json:"step"`
	N     int       `json:"n"`
	K     int       `json:"k"`
	Began time.Time `json:"began"`
}

// Claimed: somebody takes an offered step to do it.
type Claimed struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	N    int    `json:"n"`
	By   Actor  `json:"by"`
}

// Exit is how a process ended.
type Exit struct {
	Code       int       `json:"code"`
	Signal     string    `json:"signal,omitempty"`
	Stopped    bool      `json:"stopped,omitempty"`     // ended by us
	Lost       bool      `json:"lost,omitempty"`        // vanished: its host died, a reboot
	NotStarted string    `json:"not_started,omitempty"` // why it could not be started
	Refused    string    `json:"refused,omitempty"`     // why it was not started: an input is missing (work, not infrastructure)
	Idle       bool      `json:"idle,omitempty"`        // ended because it said nothing for idle_timeout
	Class      string    `json:"class,omitempty"`       // what the agent's adapter says: work, infrastructure, limit, fatal; "" = by the code
	ResumeAt   time.Time `json:"resume_at,omitzero"`    // limit: when it may go on
	Why        string    `json:"why,omitempty"`
	Usage      Usage     `json:"usage,omitzero"`
	Budget     string    `json:"budget,omitempty"` // ended, or not started, as the day's budget is used up: of which day
}

// Classes of a failure.
const (
	ClassWork           = "work"
	ClassInfrastructure = "infrastructure"
	ClassLimit          = "limit"
	ClassFatal          = "fatal"
)

// Usage is what a launch cost.
type Usage struct {
	Tokens  int64   `json:"tokens,omitempty"`
	CostUSD float64 `json:"cost_usd,omitempty"`
}

// Spend is what was, or may be, used in all: of the agents' tokens and cost, launches of agents, and the time they ran.
// Zero is nothing used, or no bound.
type Spend struct {
	Usage
	Launches int      `json:"launches,omitempty"`
	Time     Duration `json:"time,omitempty"`
}

// ProcessEnded: the process tree of a launch is seen gone; with what came of it.
type ProcessEnded struct {
	Run       string          `json:"run"`
	Key       string          `json:"key"`
	Exit      Exit            `json:"exit"`
	Day       string          `json:"day,omitempty"`        // the day, where the daemon is, that its cost counts for
	Output    string          `json:"output,omitempty"`     // the end of its output, where it matters: at most MaxOutput
	Answer    json.RawMessage `json:"answer,omitempty"`     // step: its structured answer, checked against its schema, at most MaxAnswer
	AnswerBad string          `json:"answer_bad,omitempty"` // step: why there is none that fits
	Verdict   *Judgement      `json:"verdict,omitempty"`    // review: what the reviewer says
	Check     *CheckResult    `json:"check,omitempty"`      // check
}

// UsageSeen: what an agent's process has cost so far, by what it tells while it works.
type UsageSeen struct {
	Run   string `json:"run"`
	Key   string `json:"key"`
	Usage Usage  `json:"usage"`
	Day   string `json:"day"` // see ProcessEnded
}

// DayNeared: all repos together have come near the day's budget, or have used it up. A person is told once a day.
type DayNeared struct {
	Day    string `json:"day"`
	Budget string `json:"budget"` // max_cost_usd or max_tokens
	Used   bool   `json:"used,omitempty"`
	Text   string `json:"text"`
}

// Judgement is a reviewer's verdict as read. Inconclusive, where not empty, says why it is none.
type Judgement struct {
	Outcome      string             `json:"outcome,omitempty"`
	Score        *float64           `json:"score,omitempty"`
	Scores       map[string]float64 `json:"scores,omitempty"`
	Feedback     string             `json:"feedback,omitempty"`
	Findings     json.RawMessage    `json:"findings,omitempty"`
	Answer       json.RawMessage    `json:"answer,omitempty"`
	Read         string             `json:"read,omitempty"` // where the verdict stood, in words
	Inconclusive string             `json:"inconclusive,omitempty"`
}

// CheckResult is what outputs and criteria came to, and what is there to be reviewed.
type CheckResult struct {
	OK        bool     `json:"ok"`
	Why       string   `json:"why,omitempty"`       // the feedback where not OK
	Broken    string   `json:"broken,omitempty"`    // why it could not be carried out: infrastructure
	Digest    string   `json:"digest,omitempty"`    // the taken commit, and behind "+" a digest of what does not ship; without git, of the files
	Content   string   `json:"content,omitempty"`   // the same without the history: alike where nothing changed
	Protected []string `json:"protected,omitempty"` // files changed that `protect` names
	// ProtectedAs is what each of Protected has become: one that a person has passed so is not asked about again. "" always is.
	ProtectedAs []string `json:"protected_as,omitempty"`

	ToReview  []string `json:"to_review,omitempty"` // criteria no machine can check
	Unshipped int      `json:"unshipped,omitempty"` // files that are in no commit, and with which a criterion was judged
	Apart     bool     `json:"apart,omitempty"`     // the work was taken whole: who reviews it needs nothing of its folder
}

// Answered: a person decides a gate, by command, terminal or button. A file is FileSeen.
type Answered struct {
	Gate      string    `json:"gate"`
	Run       string    `json:"run,omitempty"`   // "" = the only run where it can be meant
	Round     int       `json:"round,omitempty"` // 0 = bare: counts if Written is not before the round's opening
	Outcome   string    `json:"outcome"`
	Text      string    `json:"text,omitempty"`
	Written   time.Time `json:"written"`
	DigestNow string    `json:"digest_now,omitempty"` // digest of what was reviewed, taken when the answer came
	By        Actor     `json:"by"`

	Answer json.RawMessage `json:"answer,omitempty"` // what a pass gives beside its words, as it came

	Proven
}

// Noticed: a notice was attempted.
type Noticed struct {
	Run     string   `json:"run,omitempty"`
	ID      string   `json:"id"`
	Results []string `json:"results,omitempty"` // a line a channel: "desktop: shown", "command: exit code 1"
}

// FileWritten: a file that was owed lies where it should (Why = "" ) or cannot be written there ever.
type FileWritten struct {
	Run string `json:"run"`
	ID  string `json:"id"`
	Why string `json:"why,omitempty"`
}

// SlotAwaited: the process with the key is not started yet, as there are as many agents as there may be. Its time-out
// begins with it. SlotTaken: it is started now.
type (
	SlotAwaited struct {
		Run string `json:"run"`
		Key string `json:"key"`
	}
	SlotTaken struct {
		Run string `json:"run"`
		Key string `json:"key"`
	}
)

// FilesDropped: a launch that is over left more files in its own inbox than are kept. The rest was counted and removed.
type FilesDropped struct {
	Of string `json:"of"` // the launch
	N  int    `json:"n"`
}

// FileMoved: a file taken in has left the inbox (or is not there any more).
type FileMoved struct {
	ID string `json:"id"`
	To string `json:"to,omitempty"`
}

// Looked: what a step needs of other workflows is there.
type Looked struct {
	Run  string   `json:"run"`
	Step string   `json:"step"`
	Pins []string `json:"pins"` // "other-3/Y-2#1"
}

// PauseRequested, ResumeRequested, AbortRequested and RetryRequested: a person steers a run.
type (
	PauseRequested struct {
		Run string `json:"run"`
		By  Actor  `json:"by"`
	}
	ResumeRequested struct {
		Run string `json:"run"`
		By  Actor  `json:"by"`
	}
	AbortRequested struct {
		Run string `json:"run"`
		Why string `json:"why,omitempty"`
		By  Actor  `json:"by"`
	}
	RetryRequested struct {
		Run  string `json:"run"`
		Step string `json:"step,omitempty"`
		By   Actor  `json:"by"`
	}
)

// NoteGiven: a person has words for the agents of a run, or of one step of it.
type NoteGiven struct {
	Run  string `json:"run"`
	Step string `json:"step,omitempty"`
	Text string `json:"text"`
	By   Actor  `json:"by"`
}

// TakeoverRequested: a person wants to go on with a step in the agent's place.
type TakeoverRequested struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	By   Actor  `json:"by"`
}

// HandbackRequested: the person lets go of it: an agent goes on, or (Done) the step is done.
type HandbackRequested struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	Done bool   `json:"done,omitempty"`
	Text string `json:"text,omitempty"`
	By   Actor  `json:"by"`
}

// SpecUnread: a run's pinned spec cannot be loaded by this release.
type SpecUnread struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// Scanned: the inboxes were read whole; what lay in them when the reading began came as events before this one.
type Scanned struct {
	Began time.Time `json:"began"`
}

// TaskSeen is a task as the file says it.
type TaskSeen struct {
	ID        string          `json:"id"`
	Title     string          `json:"title,omitempty"`
	Priority  int             `json:"priority"`
	Status    string          `json:"status"`
	DependsOn []string        `json:"depends_on,omitempty"`
	For       string          `json:"for,omitempty"` // the task it stands for
	Body      json.RawMessage `json:"body,omitempty"`
}

// TasksSeen: the task file of a list was looked at.
type TasksSeen struct {
	Run     string     `json:"run"`
	Step    string     `json:"step"`
	N       int        `json:"n"`
	Key     string     `json:"key"`   // of the look, or of the writing that found another file than it was to write
	Stamp   string     `json:"stamp"` // tells this file from every other
	Missing bool       `json:"missing,omitempty"`
	Invalid string     `json:"invalid,omitempty"` // why it is no task file, with its line
	Tasks   []TaskSeen `json:"tasks,omitempty"`
}

// TasksSaved: the task file was written, or cannot be (Why).
type TasksSaved struct {
	Run   string `json:"run"`
	Step  string `json:"step"`
	N     int    `json:"n"`
	Key   string `json:"key"`
	Stamp string `json:"stamp,omitempty"`
	Why   string `json:"why,omitempty"`
}

// Ticked: time has passed.
type Ticked struct{}

// Woken: the daemon was down, or the machine asleep, from From to To.
type Woken struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

func (Configured) EventKind() string        { return "configured" }
func (RunRequested) EventKind() string      { return "run_requested" }
func (FileSeen) EventKind() string          { return "file_seen" }
func (CommitSeen) EventKind() string        { return "commit_seen" }
func (PullSeen) EventKind() string          { return "pull_seen" }
func (Polled) EventKind() string            { return "polled" }
func (Claimed) EventKind() string           { return "claimed" }
func (ProcessEnded) EventKind() string      { return "process_ended" }
func (UsageSeen) EventKind() string         { return "usage_seen" }
func (DayNeared) EventKind() string         { return "day_neared" }
func (Answered) EventKind() string          { return "answered" }
func (Noticed) EventKind() string           { return "noticed" }
func (FileWritten) EventKind() string       { return "file_written" }
func (FileMoved) EventKind() string         { return "file_moved" }
func (FilesDropped) EventKind() string      { return "files_dropped" }
func (SlotAwaited) EventKind() string       { return "slot_awaited" }
func (SlotTaken) EventKind() string         { return "slot_taken" }
func (Looked) EventKind() string            { return "looked" }
func (PauseRequested) EventKind() string    { return "pause_requested" }
func (ResumeRequested) EventKind() string   { return "resume_requested" }
func (AbortRequested) EventKind() string    { return "abort_requested" }
func (RetryRequested) EventKind() string    { return "retry_requested" }
func (NoteGiven) EventKind() string         { return "note_given" }
func (TakeoverRequested) EventKind() string { return "takeover_requested" }
func (HandbackRequested) EventKind() string { return "handback_requested" }
func (SpecUnread) EventKind() string        { return "spec_unread" }
func (Scanned) EventKind() string           { return "scanned" }
func (Ticked) EventKind() string            { return "ticked" }
func (TasksSeen) EventKind() string         { return "tasks_seen" }
func (TasksSaved) EventKind() string        { return "tasks_saved" }
func (Woken) EventKind() string             { return "woken" }
