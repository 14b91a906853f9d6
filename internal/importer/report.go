package importer

import "fmt"

// As is what became of a construct.
type As string

// What a construct of the original became.
const (
	Taken        As = "taken over"
	Approximated As = "approximated"
	Left         As = "left"
)

// Construct is one construct of the original: a key with its value.
type Construct struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Name string `json:"construct"` // its path in the original, as nodes[].prompt
	As   As     `json:"as"`
	Note string `json:"note,omitempty"` // what ours does instead
	Of   string `json:"of,omitempty"`   // the step of the original
}

// Counts are how many constructs became what.
type Counts struct {
	Taken        int `json:"taken_over"`
	Approximated int `json:"approximated"`
	Left         int `json:"left"`
}

// Fault is what our loader says of an imported spec.
type Fault struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Col     int    `json:"col"`
	Message string `json:"message"`
}

// Report is what an import did.
type Report struct {
	File       string      `json:"file"`
	Format     string      `json:"format"`
	Workflow   string      `json:"workflow"`
	Counts     Counts      `json:"counts"`
	Share      int         `json:"taken_over_percent"`
	Constructs []Construct `json:"constructs"`
	Files      []string    `json:"files"` // slash-separated, below the folder that they are written to
	Faults     []Fault     `json:"faults"`
	Vars       []string    `json:"required_vars"`
}

// count fills in the counts, and the percentage that was taken over, rounded down; 100 of nothing.
func (r *Report) count() {
	for _, c := range r.Constructs {
		switch c.As {
		case Taken:
			r.Counts.Taken++
		case Approximated:
			r.Counts.Approximated++
		default:
			r.Counts.Left++
		}
	}
	r.Share = 100
	if all := len(r.Constructs); all > 0 {
		r.Share = 100 * r.Counts.Taken / all
	}
}

// Lines returns the report as text: what is not taken over, then the counts.
func (r *Report) Lines() (out []string) {
	for _, c := range r.Constructs {
		if c.As == Taken {
			continue
		}
		of := ""
		if c.Of != "" {
			of = c.Of + ": "
		}
		out = append(out, fmt.Sprintf("%s:%d: %s%s: %s: %s", c.File, c.Line, of, c.Name, c.As, c.Note))
	}
	return append(out, fmt.Sprintf("%s (%s): %d taken over, %d approximated, %d left: %d %% taken over", r.File, r.Format,
		r.Counts.Taken, r.Counts.Approximated, r.Counts.Left, r.Share))
}
