package engine

import "encoding/json"

// The facts of task lists.
type (
	// ListBegan: attempt n of the list goes on from the file (Keep: a step that it went to has passed; the tasks keep their
	// states, tries and depth), or begins: what is not done is todo again, with new tries.
	ListBegan struct {
		of
		Step   string          `json:"step"`
		N      int             `json:"n"`
		Path   string          `json:"path"`
		Ratio  float64         `json:"ratio,omitempty"` // of the first attempt: how many tasks may fail
		Keep   bool            `json:"keep,omitempty"`
		Out    bool            `json:"out,omitempty"`  // max_tries is used up
		Made   bool            `json:"made,omitempty"` // by a step that makes the file: its statuses are taken
		Added  []Task          `json:"added,omitempty"`
		Why    string          `json:"why,omitempty"`    // new_tasks that were not added
		Make   json.RawMessage `json:"make,omitempty"`   // its file is to be written from this, anew
		Source string          `json:"source,omitempty"` // what that was computed from: see TaskList
	}
	// TasksLooked: the file is as it was taken in last.
	TasksLooked struct {
		of
		Step string `json:"step"`
	}
	// TasksRead: the file was taken in. Set are the tasks that are new or changed, Gone those taken out.
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
	// TasksWriteOwed: the file is to be written, with the statuses as they are now.
	TasksWriteOwed struct {
		of
		Step string `json:"step"`
	}
	// TasksWritten: it was (or cannot be: Why).
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
		Body      []byte          `json:"body,omitempty"`      // of one that is spent
		Blockers  []string        `json:"blockers,omitempty"`  // that its answer names
		Unblocked bool            `json:"unblocked,omitempty"` // it says that there are none
		Answer    json.RawMessage `json:"answer,omitempty"`    // of one that is done, where something reads it
		Hook      bool            `json:"hook,omitempty"`      // its run has a hook, which runs when the file says all this
	}
	// TaskLeft: the hook of the task's run is over too.
	TaskLeft struct {
		of
		Step string `json:"step"`
		Task string `json:"task"`
	}
	// TasksAdded: by the answer of the list's gate.
	TasksAdded struct {
		of
		Gate  string `json:"gate"`
		Added []Task `json:"added"`
	}
	// ListSent: the list goes to a step: for its file (missing, invalid), or for a task that has used its tries (exhausted).
	ListSent struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
		To   string `json:"to"`
		Why  string `json:"why"`
		Task string `json:"task,omitempty"`
		Text string `json:"text,omitempty"`
	}
	// ListUnsent: that it went to a step is undone; or (Again) a person lets it go to those for its file anew.
	ListUnsent struct {
		of
		Again bool `json:"again,omitempty"`
	}
	// ListSentBack: a gate sends the list's work back.
	ListSentBack struct {
		of
		Gate     string `json:"gate"`
		Feedback string `json:"feedback,omitempty"`
		Words    string `json:"words,omitempty"` // the feedback with all else that the round says, for a task
	}
	// FeedbackTaken: what came of that: where all was done and nothing was added, what the round says is a task.
	FeedbackTaken struct {
		of
		Added []Task `json:"added,omitempty"`
	}
)

// StatusRefused is a status that changed in the file while somebody was at work, and was not taken.
type StatusRefused struct {
	Task   string `json:"task"`
	Status string `json:"status"`
	Was    string `json:"was"`
}
