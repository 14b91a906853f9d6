package tasks

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Change is what is to be written of a task.
type Change struct {
	ID      string
	Status  string
	Summary string          // "" = left as it is
	Body    json.RawMessage // of a task that is not in the file: it is added
	For     string          // of such a one: the task it stands for
	// it is said by a run of stand-ins: what such a run has done is marked, and not what was done before
	Stubbed  bool
	Tried    bool     // the file's summary is of a failed try: without another it is emptied
	Blockers []string // none: left as they are; only what is done by now has none any more
}

// With returns the file's text with the changes in it, and whether it is another one. now is the time of what changed.
func (f *File) With(changes []Change, now time.Time) ([]byte, bool) {
	by := make(map[string]int, len(f.Tasks))
	for i, t := range f.Tasks {
		by[t.ID] = i
	}
	var edits []edit
	var added []string
	stamp := strconv.Quote(now.UTC().Format(time.RFC3339))
	for _, c := range changes {
		i, ok := by[c.ID]
		if !ok {
			if text := f.fresh(c, stamp); text != "" {
				added = append(added, text)
			}
			continue
		}
		edits = append(edits, f.changed(i, c, stamp)...)
	}
	if len(added) > 0 {
		at, text := f.appended(added)
		edits = append(edits, edit{span{at, at}, text})
	}
	if len(edits) == 0 {
		return f.src, false
	}
	return f.edited(edits), true
}

// changed returns what makes task i say what c says.
func (f *File) changed(i int, c Change, stamp string) (edits []edit) {
	o, more := f.places[i], ""
	put := func(key, value string) {
		if v, ok := o.members[key]; !ok {
			more += ", " + strconv.Quote(key) + ": " + value
		} else if string(f.src[v.begin:v.end]) != value {
			edits = append(edits, edit{v, value})
		}
	}
	status, summary := f.Tasks[i].Status != c.Status, (c.Summary != "" || c.Tried) && f.summary(o) != c.Summary
	really := f.Tasks[i].Stubbed && !c.Stubbed
	blocked := c.Blockers != nil && !slices.Equal(f.Tasks[i].Blockers, c.Blockers)
	if !status && !summary && !really && !blocked && !f.Tasks[i].unnamed {
		return nil
	}
	if f.isText(o) {
		c.Body, c.Status = f.Tasks[i].Body, cmp.Or(c.Status, "todo")
		c.Stubbed = c.Stubbed && c.Status == "done"
		return append(edits, edit{span{o.begin, o.end + 1}, f.fresh(c, stamp)})
	}
	if f.Tasks[i].unnamed {
		put("id", quote(c.ID))
	}
	if status {
		put("status", quote(c.Status))
	}
	if really {
		put("stubbed", "false")
	} else if status && c.Stubbed && c.Status == "done" {
		put("stubbed", "true")
	}
	if summary {
		put("summary", quote(c.Summary))
	}
	if blocked {
		put("blockers", quoteAll(c.Blockers))
	}
	put("updated_at", stamp)
	if more != "" {
		at := o.end
		for at > o.begin+1 && blank(f.src[at-1]) {
			at--
		}
		if len(o.members) == 0 {
			more = strings.TrimPrefix(more, ", ")
		}
		edits = append(edits, edit{span{at, at}, more})
	}
	return edits
}

// edit puts a text in the place of another.
type edit struct {
	at   span
	text string
}

// edited is the file's text with the edits.
func (f *File) edited(edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.at.begin - b.at.begin })
	out := make([]byte, 0, len(f.src)+128*len(edits))
	from := 0
	for _, e := range edits {
		out = append(append(out, f.src[from:e.at.begin]...), e.text...)
		from = e.at.end
	}
	return append(out, f.src[from:]...)
}

// appended returns where the texts of added tasks go, and with what around them.
func (f *File) appended(added []string) (at int, text string) {
	lead, tail, indent := "", "", "    "
	if f.bare {
		indent = "  "
	}
	for at = f.end; at > 0 && blank(f.src[at-1]); {
		at--
	}
	if len(f.Tasks) > 0 {
		lead = ","
	}
	if at == f.end {
		tail = "\n" + indent[2:]
	}
	return at, lead + "\n" + indent + strings.Join(added, ",\n"+indent) + tail
}

// fresh is the text of a task that is added.
func (f *File) fresh(c Change, stamp string) string {
	body := c.Body
	if len(body) == 0 {
		body, _ = json.Marshal(map[string]string{"id": c.ID})
	}
	s := scanner{src: body}
	if s.space(); s.at >= len(body) || body[s.at] != '{' || !json.Valid(body) {
		return ""
	}
	o := s.object()
	more := ""
	var edits []edit
	if v, ok := o.members["status"]; ok && c.Status != "" {
		edits = append(edits, edit{v, quote(c.Status)})
	}
	for _, kv := range [][2]string{{"status", quote(c.Status)}, {"created_at", stamp}, {"updated_at", stamp},
		{"stands_for", quote(c.For)}, {"summary", quote(c.Summary)}} {
		if _, ok := o.members[kv[0]]; !ok && kv[1] != `""` {
			more += ", " + quote(kv[0]) + ": " + kv[1]
		}
	}
	if _, ok := o.members["blockers"]; !ok && len(c.Blockers) > 0 {
		more += `, "blockers": ` + quoteAll(c.Blockers)
	}
	if _, ok := o.members["stubbed"]; !ok && c.Stubbed {
		more += `, "stubbed": true`
	}
	if len(o.members) == 0 {
		more = strings.TrimPrefix(more, ", ")
	}
	g := &File{src: body[:o.end+1]}
	return strings.TrimSpace(string(g.edited(append(edits, edit{span{o.end, o.end}, more}))))
}

func (f *File) summary(o object) string {
	var out string
	if v, ok := o.members["summary"]; ok {
		_ = json.Unmarshal(f.src[v.begin:v.end], &out) // of another kind: it is replaced
	}
	return out
}

// quoteAll writes texts as a JSON list.
func quoteAll(texts []string) string {
	all := make([]string, len(texts))
	for i, t := range texts {
		all[i] = quote(t)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// quote writes a text as JSON, without the escapes that are for web pages.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}
