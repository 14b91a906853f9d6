package web

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/render"
	"sluice/internal/text"
	"sluice/specs/graph"
	"sluice/web/visible"
)

// view is a page: the template of its body, and what that shows. Each of parts is a template of an
// element with the same id, which follows the journal.
type view struct {
	title string
	nav   string // the entry of the menu it belongs to
	body  string
	parts []string
	repos []string     // roots of the repos that it shows; none = all
	run   string       // the one run it shows, with those of its tasks; "" = any
	grows *attemptPage // whose output it shows the end of; nil = none
	data  any
	ask   bool // a question before an action, not a refusal
}

// pages are the templates.
type pages struct {
	t   *template.Template
	now func() time.Time // in steps

	mu    sync.Mutex
	at    time.Time // when items were rendered
	items map[item]template.HTML
}

// item is an entry of a list: its template, and what that shows.
type item struct {
	name string
	data any // comparable
}

// itemsMost is how many rendered items are kept.
const itemsMost = 2000

// inSteps returns the time that pages show ages by: a rendering for one run's change leaves the parts about
// others as they were.
func inSteps(t time.Time) time.Time { return t.Truncate(tick) }

func parsePages(now func() time.Time) (*pages, error) {
	p := &pages{now: func() time.Time { return inSteps(now()) }, items: map[item]template.HTML{}}
	t := template.New("").Funcs(template.FuncMap{
		"item":   p.item,
		"line":   text.Line,
		"ago":    func(t time.Time) string { return render.Ago(p.now().Sub(t)) },
		"left":   func(t time.Time) string { return render.Ago(t.Sub(now())) },
		"clock":  func(t time.Time) string { return t.Local().Format("2 Jan 15:04") },
		"short":  func(s string) string { return s[:min(len(s), shortCommit)] },
		"mark":   mark,
		"title":  text.Title,
		"join":   func(s []string) string { return strings.Join(s, ", ") },
		"plural": text.Plural,
	})
	var err error
	p.t, err = t.ParseFS(files, "page/*.html")
	return p, err
}

// item renders an entry of a list, or returns what was rendered of the same at the same time: of many
// runs most are as they were.
func (p *pages) item(name string, data any) (template.HTML, error) {
	key, now := item{name, data}, p.now()
	p.mu.Lock()
	if !p.at.Equal(now) || len(p.items) >= itemsMost {
		clear(p.items)
		p.at = now
	}
	html, ok := p.items[key]
	p.mu.Unlock()
	if ok {
		return html, nil
	}
	var b strings.Builder
	err := p.t.ExecuteTemplate(&b, name, data)
	html = template.HTML(b.String()) // a template made it
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil && p.at.Equal(now) {
		p.items[key] = html
	}
	return html, err
}

// shortCommit is how much of a commit's id is shown.
const shortCommit = 12

// frame is what the template of all pages shows around a body.
type frame struct {
	Title, Nav string
	Live, In   bool // it follows the journal; the browser is logged in
	Body       template.HTML
}

// render executes a template, with hidden characters made visible.
func (p *pages) render(name string, data any) ([]byte, error) {
	var b bytes.Buffer
	if err := p.t.ExecuteTemplate(&b, name, data); err != nil {
		return nil, err
	}
	return revealed(b.Bytes()), nil
}

// odd tells the characters of a page that it shows by their numbers. The templates contain none.
type odd struct{ marks int } // accents on the letter before

// is takes the next character. Odd is what text.Hidden tells, the byte order mark, what is no character for
// people, and the accent with which a tower begins.
func (o *odd) is(r rune) bool {
	if !unicode.Is(unicode.M, r) {
		o.marks = 0
	} else if o.marks++; o.marks > visible.MaxMarks {
		return true
	}
	return text.Hidden(r) || r == '\ufeff' || r == utf8.RuneError ||
		!unicode.IsGraphic(r) && !unicode.Is(unicode.Cf, r) && r != '\n' && r != '\t'
}

// revealed replaces odd characters by their numbers. Nearly all are ASCII, for which it looks no further.
func revealed(b []byte) []byte {
	var o odd
	var out []byte
	done := 0 // how much of b is in out
	for i := 0; i < len(b); {
		if c := b[i]; c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			o.marks = 0
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if o.is(r) {
			out = append(out, b[done:i]...)
			if done = i + n; r == utf8.RuneError {
				out = append(out, "\ufffd"...)
			} else {
				out = fmt.Appendf(out, "⟨U+%04X⟩", r)
			}
		}
		i += n
	}
	if done == 0 {
		return b
	}
	return append(out, b[done:]...)
}

// mark returns the class of a state's colour: ok, no, busy, ask or off.
func mark(state string) string {
	_, style := render.Mark(state)
	return styleClass(style)
}

// styleClass returns the class of a terminal's colour.
func styleClass(style string) string {
	classes := map[string]string{console.Green: "ok", console.Red: "no", console.Blue: "busy", console.Yellow: "ask"}
	return cmp.Or(classes[style], "off")
}

// streams is what a browser accepts that follows a page.
const streams = "text/event-stream"

// page serves a page, and the stream of its parts, to browsers that are logged in.
func (s *Server) page(mux *http.ServeMux, pattern string, load func(*http.Request) (view, error)) {
	mux.HandleFunc(pattern, s.loggedIn(func(w http.ResponseWriter, r *http.Request) {
		if followed(r) {
			s.stream(w, r, load)
			return
		}
		v, err := load(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.show(w, r, http.StatusOK, v)
	}))
}

// followed reports whether a browser asks for the parts of a page that follow the journal, and not for
// the page.
func followed(r *http.Request) bool {
	return r.Method == http.MethodGet && r.Header.Get("Accept") == streams
}

// post serves a form. do returns where the browser goes then, or a page that says why not.
func (s *Server) post(mux *http.ServeMux, pattern string, do func(*http.Request) (to string, v *view, err error)) {
	mux.HandleFunc(pattern, s.loggedIn(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			s.fail(w, r, &fault.Error{Cause: "the form cannot be read: " + err.Error(),
				Advice: fmt.Sprintf("a form may have at most %d KiB", bodyMost>>10)})
			return
		}
		typed := strings.NewReplacer("\r\n", "\n", "\x00", "") // a browser ends lines so; no text has NUL
		for _, values := range r.PostForm {
			for i, s := range values {
				values[i] = typed.Replace(s)
			}
		}
		to, v, err := do(r)
		switch {
		case err != nil:
			s.fail(w, r, err)
		case v != nil && v.ask:
			s.show(w, r, http.StatusOK, *v)
		case v != nil:
			s.show(w, r, http.StatusConflict, *v)
		default:
			http.Redirect(w, r, to, http.StatusSeeOther)
		}
	}))
}

// errNotFound is an error about something that does not exist.
type errNotFound struct{ what string }

func (e errNotFound) Error() string { return e.what }

// fail shows an error with its advice.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, p := told(s.opt.Log, r, err)
	s.show(w, r, status, view{title: "That did not work", body: "error", data: p})
}

// told returns the words of an error for people, and logs one that is not for them.
func told(log zerolog.Logger, r *http.Request, err error) (status int, p errorPage) {
	status = http.StatusInternalServerError
	p = errorPage{Cause: text.Message(err.Error())}
	var f *fault.Error
	var gone errNotFound
	switch {
	case errors.As(err, &gone):
		status = http.StatusNotFound
	case errors.As(err, &f):
		status = http.StatusBadRequest
		p.Cause, p.Advice = text.Message(f.Cause), text.Message(f.Advice)
	default:
		log.Error().Err(err).Str("page", r.URL.Path).Msg("the page failed")
	}
	return status, p
}

type errorPage struct{ Cause, Advice string }

// show writes a page.
func (s *Server) show(w http.ResponseWriter, r *http.Request, status int, v view) {
	body, err := s.pages.render(v.body, v.data)
	var out []byte
	if err == nil {
		f := frame{Title: v.title, Nav: v.nav, Body: template.HTML(body)} // a template made it
		_, f.In = s.login(r)
		f.Live = len(v.parts) > 0 && r.Method != http.MethodPost
		out, err = s.pages.render("frame", f)
	}
	if err != nil {
		s.opt.Log.Error().Err(err).Str("page", r.URL.Path).Msg("a template failed")
		http.Error(w, "the page cannot be shown: see the daemon's log", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out) // the browser may have gone
}

// static serves the page's own files, also without a login: they have nothing secret.
func (s *Server) static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	b, err := files.ReadFile(path.Join("static", path.Base(name)))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
		".svg": "image/svg+xml", ".webmanifest": "application/manifest+json", ".LICENSE": "text/plain; charset=utf-8"}
	if name == "app.css" {
		b = append(b, graph.Style()...)
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(b)
}

// quiet returns a console that prints nothing.
func quiet(con *console.Console) *console.Console {
	c := *con
	c.In, c.Out, c.Err, c.Colour, c.JSON, c.Yes = strings.NewReader(""), io.Discard, io.Discard, false, true, false
	return &c
}
