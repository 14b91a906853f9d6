package engine

import (
	"encoding/json"
	"time"
)

// Event is what the world reported. Its kind is a string in the journal whose meaning never changes.
type Event interface{ EventKind() string }

// Configured: the engine's settings were read, at start or on SIGHUP.
type Configured struct {
	Config Config `json:"config"`
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

// PullEnded: somebody merged or closed the run's pull request.
type PullEnded struct {
	Run    string `json:"run"`
	Pull   string `json:"pull"` // in words: "pull request #12"
	Merged bool   `json:"merged,omitempty"`
	Commit string `json:"commit,omitempty"` // merged: what it has become
	By     string `json:"by,omitempty"`     // login at the forge
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

// DayNeared: all repos together are near the day's budget, or have used it up. A person is notified once a day.
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
	Lost   bool   `json:"lost,omitempty"`   // no machine that is left has the work; Why says so
	// the taken commit, then "+" and a digest of what does not ship; without git, a digest of the files
	Digest    string   `json:"digest,omitempty"`
	Content   string   `json:"content,omitempty"`   // the same without history: equal if nothing changed
	Protected []string `json:"protected,omitempty"` // changed files that `protect` names
	// ProtectedAs is what each of Protected has become. A person who passed that content is not
	// asked again; "" is always asked about.
	ProtectedAs []string `json:"protected_as,omitempty"`
	// ProtectedBy is the earlier run that changed each, or "" for this one; nil = all by this one.
	ProtectedBy []string `json:"protected_by,omitempty"`

	ToReview  []string `json:"to_review,omitempty"` // criteria that no machine can check
	Unshipped int      `json:"unshipped,omitempty"` // files in no commit that a criterion's judgement relied on
	// the work was taken completely: a reviewer needs nothing from its folder
	Apart bool `json:"apart,omitempty"`
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

// SpecUnread: this release cannot load a run's pinned spec, or this machine lacks something else of it.
type SpecUnread struct {
	Run   string `json:"run"`
	Why   string `json:"why"`
	Lacks string `json:"lacks,omitempty"` // PausedWork; "" = the spec
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
	Gone      bool            `json:"gone,omitempty"` // it is missing, and was this before: for its restoration
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

// Woken: the daemon was down or could record nothing, or the machine asleep, from From to To.
type Woken struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// of a machine that has begun to decide in place of another: its epoch, and how far its clock is
	// ahead of the other's
	Epoch  int64    `json:"epoch,omitempty"`
	Offset Duration `json:"offset,omitempty"`
}

func (Configured) EventKind() string { return "configured" }

func (FileSeen) EventKind() string { return "file_seen" }

func (CommitSeen) EventKind() string { return "commit_seen" }

func (PullSeen) EventKind() string { return "pull_seen" }

func (PullEnded) EventKind() string { return "pull_ended" }

func (Polled) EventKind() string { return "polled" }

func (ProcessEnded) EventKind() string { return "process_ended" }

func (UsageSeen) EventKind() string { return "usage_seen" }

func (DayNeared) EventKind() string { return "day_neared" }

func (Noticed) EventKind() string { return "noticed" }

func (FileWritten) EventKind() string { return "file_written" }

func (FileMoved) EventKind() string { return "file_moved" }

func (FilesDropped) EventKind() string { return "files_dropped" }

func (SlotAwaited) EventKind() string { return "slot_awaited" }

func (SlotTaken) EventKind() string { return "slot_taken" }

func (Looked) EventKind() string { return "looked" }

func (SpecUnread) EventKind() string { return "spec_unread" }

func (Scanned) EventKind() string { return "scanned" }

func (Ticked) EventKind() string { return "ticked" }

func (TasksSeen) EventKind() string { return "tasks_seen" }

func (TasksSaved) EventKind() string { return "tasks_saved" }

func (Woken) EventKind() string { return "woken" }
