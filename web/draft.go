package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/findings"
	"sluice/internal/text"
)

// draftsDir holds feedback that was written but not sent, in the folder of all state folders.
const draftsDir = "web-drafts"

// draftMost is the largest size of a draft, in bytes.
const draftMost = 256 << 10

// comment is a comment on a line of the changes.
type comment struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// draftOf is a person's unsent feedback at a gate.
type draftOf struct {
	Round    int       `json:"round,omitempty"` // that it was written about
	Words    string    `json:"words,omitempty"`
	Comments []comment `json:"comments,omitempty"`
	Fields   []string  `json:"fields,omitempty"` // of the answer, one for each question

	from int // the earlier round that it was written about; 0 = it is about this one
}

// drafts keeps unsent feedback. It survives a closed tab, and every device shows it.
type drafts struct {
	dir string
	mu  sync.Mutex
}

// draftLife is how long a draft is kept.
const draftLife = 30 * 24 * time.Hour

// tidy removes old drafts, whose rounds were decided elsewhere.
func (d *drafts) tidy(now time.Time) error {
	all, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range all {
		if st, serr := e.Info(); serr == nil && now.Sub(st.ModTime()) > draftLife {
			err = errors.Join(err, os.Remove(filepath.Join(d.dir, e.Name())))
		}
	}
	return err
}

// draftKey names the draft of a writer at a gate, and the round that is open. What somebody on another
// device has written is not sent with another person's answer.
type draftKey struct {
	file  string
	round int
}

func keyOf(at repo, writer, run, gate string, round int) draftKey {
	return draftKey{hashOf(fmt.Sprintf("%s\x00%s\x00%s\x00%s", at.Root, run, gate, writer)) + ".json", round}
}

func (d *drafts) load(key draftKey) (draftOf, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.read(key)
}

// read returns a draft. Comments on what an earlier round asked about are words: its lines may be others now.
func (d *drafts) read(key draftKey) (out draftOf, err error) {
	raw, _, err := atomicfile.OpenRegular(d.dir, key.file, draftMost)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		return out, fault.New("remove "+filepath.Join(d.dir, key.file), "the draft cannot be read: %w", err)
	}
	if out.Round != key.round {
		out = draftOf{Words: joined(out.Words, out.Comments, ""), Fields: out.Fields, from: out.Round}
	}
	return out, nil
}

// joined returns words, comments on lines and what was kept of others as words, nothing twice.
func joined(words string, comments []comment, kept string) string {
	parts := strings.Split(words, "\n\n")
	add := func(part string) {
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	for _, c := range comments {
		if c.File != "" && c.Text != "" {
			c.Text = fmt.Sprintf("%s:%d: %s", c.File, c.Line, c.Text)
		}
		add(c.Text)
	}
	for part := range strings.SplitSeq(kept, "\n\n") {
		add(part)
	}
	return strings.TrimSpace(strings.Join(parts, "\n\n"))
}

// change applies a change to a draft and keeps it.
func (d *drafts) change(key draftKey, fn func(*draftOf)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, err := d.read(key)
	if err != nil {
		return err
	}
	fn(&now)
	now.Round = key.round
	raw, err := json.Marshal(now)
	if err != nil {
		return err
	}
	if len(raw) > draftMost {
		return fault.New("send part of it first", "the draft has more than %d KiB", draftMost>>10)
	}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(d.dir, key.file), raw, 0o600)
}

func (d *drafts) drop(key draftKey) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := os.Remove(filepath.Join(d.dir, key.file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// draft saves the feedback and comments of a form that is not sent. What cannot be saved comes back on
// the page.
func (s *Server) draft(r *http.Request) (to string, v *view, err error) {
	err = atGate(s, r, func(at repo, p *gatePage) error {
		words := strings.TrimSpace(r.PostForm.Get("text"))
		all, err := merged(p.Drafts, r.PostForm)
		if err == nil {
			_, err = findingsOf(all)
		}
		if given := r.PostForm.Get("round"); err == nil && given != strconv.Itoa(p.Gate.Round) {
			err = fault.New("look at the round that is open now", "they were about round %s", text.Line(given))
		}
		if err == nil && !p.Open {
			words = joined(words, unkept(r.PostForm), p.Kept)
			err = fault.New("look at what is asked now", "gate %s does not ask a person now", p.Gate.ID)
		}
		if err == nil {
			to = p.URL + "#" + r.PostForm.Get("row")
			err = s.drafts.change(p.key, func(d *draftOf) {
				if hashOf(words) == r.PostForm.Get("was") { // another tab may have written some since
					words = d.Words
				}
				*d = draftOf{Words: words, Comments: all, Fields: givenOr(r, d.Fields)}
			})
		}
		if err != nil {
			p.Failed = "what you wrote was not saved and is only on this page: " + text.Message(err.Error())
			p.Kept, p.Drafts = words, unkept(r.PostForm)
			out := gateView(at, p)
			to, v = "", &out
			return s.changes(r, at, p)
		}
		return nil
	})
	return to, v, err
}

// givenOr returns the fields of a form's answer, or of a form without any the kept ones.
func givenOr(r *http.Request, kept []string) []string {
	if given, ok := r.PostForm["field"]; ok {
		return given
	}
	return kept
}

// unkept returns the comments of a form as they were written.
func unkept(form url.Values) (out []comment) {
	for i, said := range form["c"] {
		c := comment{Text: strings.TrimSpace(said)}
		if i < len(form["at"]) {
			var line string
			c.File, line, _ = text.CutLast(form["at"][i], ':')
			c.Line, _ = strconv.Atoi(line)
		}
		out = append(out, c)
	}
	return out
}

// merged returns the comments of a form and the kept ones on other lines. An empty comment removes the
// one before. A removed line has the place of the line before it: what a form has at one place becomes
// one comment.
func merged(kept []comment, form url.Values) ([]comment, error) {
	at, said := form["at"], form["c"]
	if len(at) != len(said) {
		return nil, fault.New("open the gate again", "a comment names no line")
	}
	out := slices.Clone(kept)
	for i, place := range at {
		file, line, ok := text.CutLast(place, ':')
		n, err := strconv.Atoi(line)
		if !ok || err != nil || n < 1 || n > findings.MaxLine || file == "" {
			return nil, fault.New("click the number of a line", "a comment names no line")
		}
		c := comment{File: file, Line: n, Text: strings.TrimSpace(said[i])}
		same := func(o comment) bool { return o.File == c.File && o.Line == c.Line }
		if j := slices.IndexFunc(out, same); j >= 0 && slices.Contains(at[:i], place) && out[j].Text != c.Text {
			c.Text = strings.TrimSpace(out[j].Text + "\n\n" + c.Text)
		}
		if len(c.Text) > findings.MaxText {
			return nil, fault.New("write a shorter one", "a comment has more than %d bytes", findings.MaxText)
		}
		out = slices.DeleteFunc(out, same)
		if c.Text != "" {
			out = append(out, c)
		}
	}
	if len(out) > findings.Max {
		return nil, fault.New("send some of them first", "there are more than %d comments", findings.Max)
	}
	slices.SortStableFunc(out, func(a, b comment) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return out, nil
}
