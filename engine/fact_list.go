package engine

import "encoding/json"

// The facts of task lists.
type (
	// ListBegan: attempt n of the list resumes with the file (Keep: a step that it visited has
	// passed; tasks keep their states, tries and depth), or begins: unfinished tasks become todo
	// with new tries.
	ListBegan struct {
		of
		Step   string          `json:"step"`
		N      int             `json:"n"`
		Path   string          `json:"path"`
		Ratio  float64         `json:"ratio,omitempty"` // how many tasks may fail; from the first attempt
		Keep   bool            `json:"keep,omitempty"`
		Out    bool            `json:"out,omitempty"`  // max_tries is used up
		Made   bool            `json:"made,omitempty"` // a step produced the file: its statuses are accepted
		Added  []Task          `json:"added,omitempty"`
		Why    string          `json:"why,omitempty"`    // why new_tasks were not added
		Make   json.RawMessage `json:"make,omitempty"`   // content for a new file
		Source string          `json:"source,omitempty"` // what Make was computed from: see TaskList
	}
	// TasksLooked: the file is unchanged since the last read.
	TasksLooked struct {
		of
		Step string `json:"step"`
	}
	// TasksRead: the file was merged. Set has the new and changed tasks, Gone the removed ones.
	TasksRead struct {
		of
		Step    string          `json:"step"`
		Stamp   string          `json:"stamp"`
		File    string          `json:"file"` // ok, missing, invalid
		Why     string          `json:"why,omitempty"`
		Set     []Task          `json:"set,omitempty"`
		Gone    []string        `json:"gone,omitempty"`
		Refused []StatusRefused `json:"refused,omitempty"`
		Dirty   bool            `json:"dirty,omitempty"`
		Taint   bool            `json:"taint,omitempty"`
		Deepest int             `json:"deepest"`
	}
	// TasksWriteOwed: the file must be written with the current statuses.
	TasksWriteOwed struct {
		of
		Step string `json:"step"`
	}
	// TasksWritten: the file was written, or (Why) cannot be.
	TasksWritten struct {
		of
		Step  string `json:"step"`
		Stamp string `json:"stamp,omitempty"`
		Why   string `json:"why,omitempty"`
	}
	// TaskEnded: the task's run is over and its processes are gone.
	TaskEnded struct {
		of
		Step      string          `json:"step"`
		Task      string          `json:"task"`
		State     string          `json:"state"` // done, todo (another try), blocked, failed, spent
		Tried     bool            `json:"tried,omitempty"`
		Held      bool            `json:"held,omitempty"`
		Summary   string          `json:"summary,omitempty"`
		Why       string          `json:"why,omitempty"`
		Added     []Task          `json:"added,omitempty"`
		Body      []byte          `json:"body,omitempty"`      // of a spent task
		Blockers  []string        `json:"blockers,omitempty"`  // named in its answer
		Unblocked bool            `json:"unblocked,omitempty"` // its answer names no blockers
		Answer    json.RawMessage `json:"answer,omitempty"`    // of a done task, if something reads it
		// its run has a hook, which runs once the file has this result
		Hook bool `json:"hook,omitempty"`
	}
	// TaskLeft: the hook of the task's run is over too.
	TaskLeft struct {
		of
		Step string `json:"step"`
		Task string `json:"task"`
	}
	// TasksAdded: the answer of the list's gate added tasks.
	TasksAdded struct {
		of
		Gate  string `json:"gate"`
		Added []Task `json:"added"`
	}
	// ListSent: the list visits a step, for its file (missing, invalid) or for a task that has used
	// its tries (exhausted).
	ListSent struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		To   string `json:"to"`
		Why  string `json:"why"`
		Task string `json:"task,omitempty"`
		Text string `json:"text,omitempty"`
	}
	// ListUnsent: the list's visit to a step is undone; or (Again) a person resets its visits for
	// the file.
	ListUnsent struct {
		of
		Again bool `json:"again,omitempty"`
	}
	// ListSentBack: a gate sends the list's work back.
	ListSentBack struct {
		of
		Gate     string `json:"gate"`
		Feedback string `json:"feedback,omitempty"`
		Words    string `json:"words,omitempty"` // the feedback with everything else from the round, for a task
	}
	// FeedbackTaken: the feedback was handled. If all tasks were done and none was added, it became
	// a task.
	FeedbackTaken struct {
		of
		Added []Task `json:"added,omitempty"`
	}
)

// StatusRefused is a change in the file while somebody was at work that was not taken: a status, or
// "added" or "removed".
type StatusRefused struct {
	Task   string `json:"task"`
	Status string `json:"status"`
	Was    string `json:"was"`
}
