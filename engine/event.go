package engine

import (
	"encoding/json"
	"time"
)

// Event is what the world reported. Its kind is a string in the journal whose meaning never
// changes.
type Event interface{ EventKind() string }

// Actor is who did something, and how we know.
type Actor struct {
	Who   string `json:"who,omitempty"`   // the system's user name
	Via   string `json:"via,omitempty"`   // file, command, terminal, desktop, page, daemon
	Trust string `json:"trust,omitempty"` // file, sandbox or signed: what separates an agent from this statement
	Key   string `json:"key,omitempty"`   // signed: the key's fingerprint; Who is then its principal
}

// ViaMCP marks an orchestrating agent, which acts in its person's account but not as that person.
const ViaMCP = "mcp"

// Signed is signed content and its signer. The signature was verified before the event was made.
type Signed struct {
	Names   []string  `json:"names"` // the signer's principal, then other names of the same person
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

// Configured: the engine's settings were read, at start or on SIGHUP.
type Configured struct {
	Config Config `json:"config"`
}

// RunRequested: somebody starts a workflow.
type RunRequested struct {
	Workflow string         `json:"workflow"`
	Source   string         `json:"source"`         // the complete text of the spec
	Digest   string         `json:"digest"`         // hex SHA-256 of Source
	File     string         `json:"file,omitempty"` // hex SHA-256 of the spec's file, from which Source was made
	Vars     map[string]any `json:"vars,omitempty"`
	Parallel bool           `json:"parallel,omitempty"` // may run beside a live run of the workflow
	Paused   bool           `json:"paused,omitempty"`
	// worktree as written (cleaned) -> key: real path of its checkout's top level
	Trees map[string]string `json:"trees,omitempty"`
	// what stand-ins do in place of the run's agents; absent for a real run
	Stubs json.RawMessage `json:"stubs,omitempty"`
	By    Actor           `json:"by"`
}

// FileSeen: an inbox has a complete (or hopeless) file.
type FileSeen struct {
	Name  string `json:"name"`            // base name
	Dir   string `json:"dir,omitempty"`   // "" for signals/ itself, else the run whose folder it is in
	Place string `json:"place,omitempty"` // "" for the root's inbox, else the worktree's (as its key)
	// the launch whose own inbox it was in: the launch wrote it, not a person
	Of      string    `json:"of,omitempty"`
	ID      string    `json:"id"` // the file's identity: device, inode, size, digest
	Digest  string    `json:"digest,omitempty"`
	Written time.Time `json:"written"` // mtime
	// the launch whose token the file has; "?" if none that is live; "" without a token
	TokenOf string `json:"token_of,omitempty"`
	By      Actor  `json:"by"`

	Sentinel    *Sentinel `json:"sentinel,omitempty"` // read as a step's sentinel; nil if that fails
	SentinelBad string    `json:"sentinel_bad,omitempty"`
	Human       *HumanSay `json:"human,omitempty"` // read as a person's answer
	HumanBad    string    `json:"human_bad,omitempty"`
	DigestNow   string    `json:"digest_now,omitempty"` // see Answered
}

// Sentinel is a step's report about itself.
type Sentinel struct {
	Step     string          `json:"step,omitempty"`
	Status   string          `json:"status,omitempty"` // done (also if absent), failed, blocked
	Summary  string          `json:"summary,omitempty"`
	Question string          `json:"question,omitempty"`
	Options  []string        `json:"options,omitempty"`
	Run      string          `json:"run,omitempty"`
	Attempt  int             `json:"attempt,omitempty"`
	Launch   int             `json:"launch,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// HumanSay is the content of a person's file.
type HumanSay struct {
	Text  string `json:"text,omitempty"`
	Round int    `json:"round,omitempty"`
	Run   string `json:"run,omitempty"`
	By    string `json:"by,omitempty"`

	Gate    string `json:"gate,omitempty"`    // must match the file name
	Outcome string `json:"outcome,omitempty"` // must match the file name

	Answer json.RawMessage `json:"answer,omitempty"` // see Answered

	Proven
}

// Proven is the proof that comes with a signed answer.
type Proven struct {
	Signed   *Signed `json:"signed,omitempty"`
	Proof    string  `json:"proof,omitempty"`    // the text with its signature, as received
	Unproven string  `json:"unproven,omitempty"` // why the signature, and therefore the answer, does not count
}

// CommitSeen: a commit with an attempt's marker was first seen after the attempt began.
type CommitSeen struct {
	Run     string `json:"run"`
	Step    string `json:"step"`
	N       int    `json:"n"`
	K       int    `json:"k"`
	SHA     string `json:"sha"`
	Author  string `json:"author"` // name, e-mail and author date: equal for a cherry-picked or amended copy
	Subject string `json:"subject,omitempty"`
	// Makers are the names and e-mail addresses of author and committer, as the commit claims.
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

// Polled: refs or the forge were searched for the launch's commit or pull request, starting at
// Began. What was found came as earlier events.
type Polled struct {
	Run   string    `json:"run"`
	Step  string    `json:"step"`
	N     int       `json:"n"`
	K     int       `json:"k"`
	Began time.Time `json:"began"`
}

// Claimed: somebody takes an offered step.
type Claimed struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	N    int    `json:"n"`
	By   Actor  `json:"by"`
}

// Exit is how a process ended.
type Exit struct {
	Code       int    `json:"code"`
	Signal     string `json:"signal,omitempty"`
	Stopped    bool   `json:"stopped,omitempty"`     // ended by us
	Lost       bool   `json:"lost,omitempty"`        // vanished: its host died or the machine rebooted
	NotStarted string `json:"not_started,omitempty"` // why it could not be started
	// why it was not started: an input is missing (work, not infrastructure)
	Refused string `json:"refused,omitempty"`
	Idle    bool   `json:"idle,omitempty"` // ended after no output for idle_timeout
	// from the agent's adapter: work, infrastructure, limit, fatal; "" = decide by the code
	Class    string    `json:"class,omitempty"`
	ResumeAt time.Time `json:"resume_at,omitzero"` // limit: when it may resume
	Why      string    `json:"why,omitempty"`
	Usage    Usage     `json:"usage,omitzero"`
	Budget   string    `json:"budget,omitempty"` // ended or not started because this day's budget is used up
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

// Spend is total use, or a limit on it: the agents' tokens and cost, their launches and running
// time. Zero means none used, or no limit.
type Spend struct {
	Usage
	Launches int      `json:"launches,omitempty"`
	Time     Duration `json:"time,omitempty"`
}

// ProcessEnded: the process tree of a launch is gone.
type ProcessEnded struct {
	Run    string `json:"run"`
	Key    string `json:"key"`
	Exit   Exit   `json:"exit"`
	Day    string `json:"day,omitempty"`    // the day of its cost, in the daemon's time zone
	Output string `json:"output,omitempty"` // the end of its output if needed, at most MaxOutput
	// step: its structured answer, valid by its schema, at most MaxAnswer
	Answer    json.RawMessage `json:"answer,omitempty"`
	AnswerBad string          `json:"answer_bad,omitempty"` // step: why there is no valid answer
	Verdict   *Judgement      `json:"verdict,omitempty"`    // review: the reviewer's verdict
	Check     *CheckResult    `json:"check,omitempty"`      // check
}

// UsageSeen: an agent reported what its process has cost so far.
type UsageSeen struct {
	Run   string `json:"run"`
	Key   string `json:"key"`
	Usage Usage  `json:"usage"`
	Day   string `json:"day"` // see ProcessEnded
}

// DayNeared: all repos together are near the day's budget, or have used it up. A person is notified
// once a day.
type DayNeared struct {
	Day    string `json:"day"`
	Budget string `json:"budget"` // max_cost_usd or max_tokens
	Used   bool   `json:"used,omitempty"`
	Text   string `json:"text"`
}

// Judgement is a reviewer's verdict as read. Inconclusive is why there is none, if not empty.
type Judgement struct {
	Outcome      string             `json:"outcome,omitempty"`
	Score        *float64           `json:"score,omitempty"`
	Scores       map[string]float64 `json:"scores,omitempty"`
	Feedback     string             `json:"feedback,omitempty"`
	Findings     json.RawMessage    `json:"findings,omitempty"`
	Answer       json.RawMessage    `json:"answer,omitempty"`
	Read         string             `json:"read,omitempty"` // where the verdict was found, in words
	Inconclusive string             `json:"inconclusive,omitempty"`
}

// CheckResult is the result of outputs and criteria, and what there is to review.
type CheckResult struct {
	OK     bool   `json:"ok"`
	Why    string `json:"why,omitempty"`    // the feedback if not OK
	Broken string `json:"broken,omitempty"` // why the check could not run: infrastructure
	// the taken commit, then "+" and a digest of what does not ship; without git, a digest of the
	// files
	Digest    string   `json:"digest,omitempty"`
	Content   string   `json:"content,omitempty"`   // the same without history: equal if nothing changed
	Protected []string `json:"protected,omitempty"` // changed files that `protect` names
	// ProtectedAs is what each of Protected has become. A person who passed that content is not
	// asked again; "" is always asked about.
	ProtectedAs []string `json:"protected_as,omitempty"`

	ToReview  []string `json:"to_review,omitempty"` // criteria that no machine can check
	Unshipped int      `json:"unshipped,omitempty"` // files in no commit that a criterion's judgement relied on
	// the work was taken completely: a reviewer needs nothing from its folder
	Apart bool `json:"apart,omitempty"`
}

// Answered: a person decides a gate by command, terminal or button. A file is FileSeen.
type Answered struct {
	Gate      string    `json:"gate"`
	Run       string    `json:"run,omitempty"`   // "" = the only run it can mean
	Round     int       `json:"round,omitempty"` // 0 = unspecified: counts if Written is not before the round's opening
	Outcome   string    `json:"outcome"`
	Text      string    `json:"text,omitempty"`
	Written   time.Time `json:"written"`
	DigestNow string    `json:"digest_now,omitempty"` // digest of what was reviewed, taken when the answer came
	By        Actor     `json:"by"`

	Answer json.RawMessage `json:"answer,omitempty"` // a pass's structured answer, as received

	Proven
}

// Noticed: a notice was attempted.
type Noticed struct {
	Run     string   `json:"run,omitempty"`
	ID      string   `json:"id"`
	Results []string `json:"results,omitempty"` // one line per channel: "desktop: shown", "command: exit code 1"
}

// FileWritten: an owed file is in place, or (Why) can never be written.
type FileWritten struct {
	Run string `json:"run"`
	ID  string `json:"id"`
	Why string `json:"why,omitempty"`
}

// SlotAwaited: the process waits for one of the agent slots. Its time-out begins when it starts.
// SlotTaken: it started.
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

// FilesDropped: a launch that is over left more files in its own inbox than are kept. The rest was
// counted and removed.
type FilesDropped struct {
	Of string `json:"of"` // the launch
	N  int    `json:"n"`
}

// FileMoved: an accepted file has left the inbox, or no longer exists.
type FileMoved struct {
	ID string `json:"id"`
	To string `json:"to,omitempty"`
}

// Looked: what a step needs from other workflows is available.
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

// NoteGiven: a person leaves a note for the agents of a run, or of one step.
type NoteGiven struct {
	Run  string `json:"run"`
	Step string `json:"step,omitempty"`
	Text string `json:"text"`
	By   Actor  `json:"by"`
}

// TakeoverRequested: a person wants to continue a step in the agent's place.
type TakeoverRequested struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	By   Actor  `json:"by"`
}

// HandbackRequested: the person returns it: an agent continues, or (Done) the step is done.
type HandbackRequested struct {
	Run  string `json:"run"`
	Step string `json:"step"`
	Done bool   `json:"done,omitempty"`
	Text string `json:"text,omitempty"`
	By   Actor  `json:"by"`
}

// SpecUnread: this release cannot load a run's pinned spec.
type SpecUnread struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// Scanned: the inboxes were read completely. What was in them at Began came as earlier events.
type Scanned struct {
	Began time.Time `json:"began"`
}

// TaskSeen is a task as it is in the file.
type TaskSeen struct {
	ID        string          `json:"id"`
	Title     string          `json:"title,omitempty"`
	Priority  int             `json:"priority"`
	Status    string          `json:"status"`
	DependsOn []string        `json:"depends_on,omitempty"`
	For       string          `json:"for,omitempty"` // the task it replaces
	Body      json.RawMessage `json:"body,omitempty"`
}

// TasksSeen: the task file of a list was read.
type TasksSeen struct {
	Run     string     `json:"run"`
	Step    string     `json:"step"`
	N       int        `json:"n"`
	Key     string     `json:"key"`   // of the look, or of the write that found an unexpected file
	Stamp   string     `json:"stamp"` // identifies this version of the file
	Missing bool       `json:"missing,omitempty"`
	Invalid string     `json:"invalid,omitempty"` // why it is no task file, with the line
	Tasks   []TaskSeen `json:"tasks,omitempty"`
}

// TasksSaved: the task file was written, or (Why) cannot be.
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
