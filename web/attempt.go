package web

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"

	"sluice/agents/launch"
	"sluice/agents/program"
	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/layout"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/internal/workspace"
	"sluice/web/transcript"
)

// attemptPage shows the output of an attempt's agent.
type attemptPage struct {
	Repo, Run, RunURL, URL string
	Step, Name, State      string
	N                      int
	Spent, Summary         string
	Launches               []launchLink
	Launch                 int
	Stream                 string // stdout or stderr
	Lines                  []said
	Earlier, Later         string // addresses of the parts around it; "" = none
	AtEnd, Works           bool
	Unsaid                 int
	None                   string // why there is nothing
	Live                   bool

	out transcript.Output
}

type launchLink struct {
	N   int
	URL string
	Now bool
}

// said is a line of the transcript.
type said struct {
	Kind, Name string
	HTML       template.HTML // web/transcript made it
	Follow     bool
}

func (s *Server) attempt(r *http.Request) (v view, err error) {
	err = s.look(r, func(at repo, _ workspace.Viewer, _ bool, run daemon.RunStatus) error {
		step, number, _ := text.CutLast(r.PathValue("attempt"), '.')
		n, _ := strconv.Atoi(number)
		st := run.Step(step)
		if st == nil || n < 1 || n > len(st.Attempts) {
			return errNotFound{fmt.Sprintf("no attempt %q in %s", text.Line(r.PathValue("attempt")), run.ID)}
		}
		a := st.Attempts[n-1]
		url := runURL(at.Name, run.ID)
		p := attemptPage{Repo: at.Name, Run: run.ID, RunURL: url, URL: attemptURL(url, step, n),
			Step: step, Name: st.Name, State: stateOf(*st, a), N: n, Spent: render.Spent(a.Usage, engine.Usage{}),
			Summary: a.Summary, Live: run.Live(), Stream: "stdout"}
		if r.URL.Query().Get("stderr") != "" {
			p.Stream = "stderr"
		}
		p.launches(r, a)
		if err := p.read(r, at, run); err != nil {
			return err
		}
		v = view{title: fmt.Sprintf("%s.%d of %s", step, n, run.ID), nav: "inbox", body: "attempt",
			parts: []string{"attempthead"}, repos: []string{at.Root}, run: p.Run, data: p}
		if p.AtEnd {
			v.grows = &p
		}
		return nil
	})
	return v, err
}

// stateOf returns the state of an attempt. What ends a run undoes what is at work, also the attempt that failed.
func stateOf(st daemon.StepStatus, a engine.Attempt) string {
	if a.N == st.Attempt && st.State == engine.RunFailed {
		return st.State
	}
	return a.State
}

// launches are the launches of the attempt; the last one is shown unless the address names another.
func (p *attemptPage) launches(r *http.Request, a engine.Attempt) {
	last := max(a.K, 1)
	p.Launch = last
	if k, err := strconv.Atoi(r.URL.Query().Get("launch")); err == nil && k >= 1 && k <= last {
		p.Launch = k
	}
	p.Works = p.Launch == last && a.Exit == nil && a.Ended.IsZero()
	for k := 1; last > 1 && k <= last; k++ {
		p.Launches = append(p.Launches, launchLink{k, fmt.Sprintf("%s?launch=%d", p.URL, k), k == p.Launch})
	}
}

// read reads the part of the transcript that the address asks for: its end, or the part before or after
// a position.
func (p *attemptPage) read(r *http.Request, at repo, run daemon.RunStatus) error {
	dir := daemon.AttemptDir(at.Root, run.Dir, p.Step, p.N, p.Launch)
	p.out = transcript.Output{Dir: dir, Name: p.Stream}
	if prog, ok := launch.ReadProgram(dir); ok && program.Known(prog.Format) && p.Stream == "stdout" {
		p.out.Format = prog.Format
	}
	p.Works = p.Works && !layout.Ended(dir)
	p.out.Ended = !p.Works
	q := r.URL.Query()
	before, isBefore := transcript.ParsePos(q.Get("before"))
	after, isAfter := transcript.ParsePos(q.Get("after"))
	p.AtEnd = !isBefore && !isAfter
	var piece transcript.Piece
	var err error
	switch {
	case isBefore:
		piece, err = p.out.Before(before)
	case isAfter:
		piece, err = p.out.After(after)
	case followed(r): // its stream reads on
		return nil
	default:
		piece, err = p.out.End()
	}
	if err != nil {
		p.None, err = p.none(err)
		return err
	}
	p.Unsaid = piece.Unsaid
	if piece.Earlier != nil {
		p.Earlier = p.link("before", *piece.Earlier)
	}
	if piece.More || isBefore {
		p.Later = p.link("after", piece.Later)
	}
	for _, l := range piece.Lines {
		p.Lines = append(p.Lines, saidOf(l))
	}
	if len(p.Lines) == 0 {
		p.None, _ = p.none(nil)
	}
	return nil
}

// none returns why no line is shown, where that is not an error.
func (p *attemptPage) none(err error) (string, error) {
	switch {
	case err == nil:
		return "This part has no readable lines.", nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	case p.Works:
		return "It has printed nothing yet.", nil
	}
	return "It printed nothing, or its files were removed.", nil
}

// link returns the address of the part before or after a position.
func (p *attemptPage) link(key string, pos transcript.Pos) string {
	more := ""
	if p.Stream == "stderr" {
		more = "&stderr=1"
	}
	return fmt.Sprintf("%s?launch=%d&%s=%s%s", p.URL, p.Launch, key, pos, more)
}

func saidOf(l transcript.Line) said {
	return said{string(l.Kind), l.Name, template.HTML(l.HTML), l.Follow}
}
