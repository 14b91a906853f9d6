package engine

import "time"

// Kinds of trigger.
const (
	OnSchedule = "schedule" // a minute of a cron line
	OnFiles    = "files"    // a file that is new or has changed
	OnPush     = "push"     // a commit that arrives on a branch
	OnIssue    = "issue"    // an issue of the forge
	OnWebhook  = "webhook"  // a signed request
)

// What a firing does while a run of its workflow is live.
const (
	OverlapQueue    = "queue"    // its run waits for its turn
	OverlapSkip     = "skip"     // it starts none
	OverlapParallel = "parallel" // its run works beside
	OverlapReplace  = "replace"  // runs that triggers started are aborted for it
)

// What is made of the minutes of a schedule that passed while nobody was there.
const (
	CatchOne  = "one"  // the newest fires
	CatchAll  = "all"  // each fires, at most MaxCaughtUp
	CatchNone = "none" // none fires
)

// On is what starts runs of a workflow by itself.
type On struct {
	Triggers  []*Trigger
	With      []ChildVar // vars of the run, from the names of the firing
	Overlap   string
	MaxPerDay int
	Confirm   *bool // the run waits for a person before its first step; nil = if Trigger.Outside
}

// Trigger is one thing that a workflow waits for.
type Trigger struct {
	Name string // its kind; of further ones of a kind "schedule-2"
	Kind string
	ID   string // what its firings are remembered under: of a schedule, its line and zone; else its kind

	Cron, Zone, CatchUp string
	Next                func(time.Time) time.Time `json:"-"` // the first minute after; zero = never

	Globs           []string // files
	Branches, Paths []string // push
	Labels          []string // issue
	Assignee        string
}

// Outside reports whether what fires it may be of somebody who has no say in the repo.
func (t *Trigger) Outside() bool { return t.Kind == OnIssue || t.Kind == OnWebhook }

// Trigger returns the trigger with the name, or nil.
func (o *On) Trigger(name string) *Trigger {
	if o == nil {
		return nil
	}
	return find(o.Triggers, func(t *Trigger) bool { return t.Name == name })
}

// FiringVars returns the vars that a firing gives its run: those of `with`, and each of its values
// that the workflow declares as a var.
func (s *Spec) FiringVars(t *Trigger, values map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, v := range s.Vars {
		if x, ok := values[v.Name]; ok {
			out[v.Name] = x
		}
	}
	env := &Env{Workflow: s.ID, Event: values}
	for _, v := range s.On.With {
		x, err := v.Value.Eval(env)
		if err != nil {
			return nil, err
		}
		out[v.Name] = x
	}
	return out, nil
}
