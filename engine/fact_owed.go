package engine

// The facts of what is owed in writing, of inbox files and of notices.
type (
	// RetryContextOwed: the feedback must be written before the work goes on.
	RetryContextOwed struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
		File int    `json:"file"`
		Path string `json:"path"`
	}
	// OutputsOwed: the gate's outputs must be written from its answer before the work goes on.
	OutputsOwed struct {
		of
		Gate string `json:"gate"`
		N    int    `json:"n"`
	}
	// AdvanceOwed: the branch must move to the attempt's commit before the work goes on.
	AdvanceOwed struct {
		of
		Step string `json:"step"`
		N    int    `json:"n"`
	}
	// RewindOwed: the branch must move back to before the attempt, which a person vetoed after it
	// passed, or which was built on such work.
	RewindOwed struct {
		of
		Step  string   `json:"step"`
		N     int      `json:"n"`
		With  []string `json:"with,omitempty"`  // further attempts undone with it: STEP.N
		Files bool     `json:"files,omitempty"` // the folder's files are restored too
	}
	// LandingOwed: nothing is left to do; before the run ends, its work must go where the spec
	// names.
	LandingOwed struct {
		of
		ID string `json:"id"`
	}
	// WriteDone: an owed file is in place, or (Why) cannot be written.
	WriteDone struct {
		of
		ID  string `json:"id"`
		Why string `json:"why,omitempty"`
	}
	// FileTaken: an inbox file was accepted; it is to be moved.
	FileTaken struct {
		Move Move `json:"move"`
	}
	// FileGone: it has left the inbox.
	FileGone struct {
		ID string `json:"id"`
	}
	// NoticeOwed: a person is to be notified.
	NoticeOwed struct {
		Notice Notice `json:"notice"`
	}
	// NoticeTried: the notice was attempted.
	NoticeTried struct {
		ID      string   `json:"id"`
		Run     string   `json:"run,omitempty"`
		Gate    string   `json:"gate,omitempty"`
		N       int      `json:"n,omitempty"`
		Results []string `json:"results,omitempty"`
	}
)

// RunID returns the run that the file or the notice concerns, if any.
func (f FileTaken) RunID() string   { return f.Move.Run }
func (FileGone) RunID() string      { return "" } // the fact is about the repo
func (f NoticeOwed) RunID() string  { return f.Notice.Run }
func (f NoticeTried) RunID() string { return f.Run }
