// Package tasks reads and writes task files: JSON with a list of tasks, each with an id, a
// priority, a status and what it depends on; or that list alone, in which ids may be left out and a
// text is a task's title. It is pure: it has texts in and texts out.
//
// Everything that it does not know is kept as it stands: a change is made in the text itself, so
// that a file formatted by hand keeps its format, its keys and their order.
package tasks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/strictjson"
)

// Version is the schema_version that is known. A file without one counts as of it.
const Version = 1

// Limits of a task file.
const (
	MaxBytes = 16 << 20
	MaxTasks = 20_000
)

// NoPriority is the priority of a task that names none: after all that do.
const NoPriority = 1 << 30

// File is a task file as read.
type File struct {
	Tasks []Task

	src    []byte
	places []object // of the tasks; of one that is a text, where that stands
	bare   bool     // the file is the list alone
	end    int      // where the list's closing bracket stands
}

// Task is one task of a file.
type Task struct {
	ID        string
	Title     string // its description's first line where it has no title
	Priority  int
	Status    string // todo where it has none
	DependsOn []string
	StandsFor string // the task it was cut from
	Stubbed   bool   // stand-ins have it done: nobody really did
	Blockers  []string
	Body      json.RawMessage

	unnamed bool // its id is not in the file: it is by its place
}

// Fault is what is wrong with a task file, and where.
type Fault struct {
	Line int
	Why  string
}

func (f *Fault) Error() string { return fmt.Sprintf("line %d: %s", f.Line, f.Why) }

// Read reads a task file. The fault says the line.
func Read(src []byte) (*File, *Fault) {
	if len(src) > MaxBytes {
		return nil, &Fault{1, fmt.Sprintf("the file has more than %d MiB", MaxBytes>>20)}
	}
	f := &File{src: src}
	s := scanner{src: src}
	s.space()
	list := span{begin: s.at}
	if f.bare = s.at < len(src) && src[s.at] == '['; f.bare {
		if _, err := strictjson.Check(src, MaxBytes); err != nil {
			return nil, &Fault{lineOfError(src), "not a JSON list: " + err.Error()}
		}
		s.value()
		list.end = s.at
	} else {
		if err := strictjson.Object(src, MaxBytes); err != nil {
			return nil, &Fault{lineOfError(src), "not a JSON object: " + err.Error()}
		}
		var fault *Fault
		if list, fault = f.listOf(s.object()); fault != nil {
			return nil, fault
		}
	}
	s.at, f.end = list.begin+1, list.end-1
	for s.space(); s.src[s.at] != ']'; s.space() {
		if s.src[s.at] == ',' {
			s.at++
			continue
		}
		begin := s.at
		o, fault := f.entry(&s)
		if fault != nil {
			return nil, fault
		}
		t, fault := f.task(o)
		if fault != nil {
			return nil, fault
		}
		if f.Tasks, f.places = append(f.Tasks, t), append(f.places, o); len(f.Tasks) > MaxTasks {
			return nil, f.fault(begin, "there are more than %d tasks", MaxTasks)
		}
	}
	f.name()
	return f, f.whole()
}

// listOf finds the list of tasks in the file's object.
func (f *File) listOf(top object) (span, *Fault) {
	if v, ok := top.members["schema_version"]; ok && string(f.src[v.begin:v.end]) != strconv.Itoa(Version) {
		return span{}, f.fault(v.begin, "schema_version %s is unknown: want %d", short(f.src[v.begin:v.end]), Version)
	}
	list, ok := top.members["tasks"]
	if !ok {
		return span{}, f.fault(top.begin, `"tasks" is missing: it is the list of tasks`)
	}
	if f.src[list.begin] != '[' {
		return span{}, f.fault(list.begin, `"tasks": want a list`)
	}
	return list, nil
}

// lineOfError finds the line where the text stops being JSON.
func lineOfError(src []byte) int {
	var syntax *json.SyntaxError
	var v any
	if err := json.Unmarshal(src, &v); err != nil {
		if s, ok := err.(*json.SyntaxError); ok {
			syntax = s
		}
	}
	if syntax == nil {
		return 1
	}
	return 1 + strings.Count(string(src[:min(int(syntax.Offset), len(src))]), "\n")
}

func (f *File) fault(at int, format string, args ...any) *Fault {
	return &Fault{1 + strings.Count(string(f.src[:at]), "\n"), fmt.Sprintf(format, args...)}
}

// task reads one task.
func (f *File) task(o object) (Task, *Fault) {
	t := Task{Priority: NoPriority, Status: "todo", Body: f.src[o.begin : o.end+1]}
	if f.isText(o) {
		if t.Title, _ = plainText(t.Body); strings.TrimSpace(t.Title) == "" {
			return t, f.fault(o.begin, "task %d of the list is an empty text", len(f.Tasks)+1)
		}
		t.unnamed = true
		return t, nil
	}
	fault := f.otherCase(o)
	read := func(key, want string, into any) {
		v, ok := o.members[key]
		if !ok || fault != nil {
			return
		}
		if to, text := into.(*string); text {
			if *to, text = plainText(f.src[v.begin:v.end]); text {
				return
			}
		}
		if err := json.Unmarshal(f.src[v.begin:v.end], into); err != nil {
			name := cmp.Or(t.ID, fmt.Sprintf("%d of the list", len(f.Tasks)+1))
			fault = f.fault(v.begin, "task %s: %s: want %s, found %s", name, key, want, short(f.src[v.begin:v.end]))
		}
	}
	var description string
	read("id", "a text", &t.ID)
	read("title", "a text", &t.Title)
	read("status", "a text", &t.Status)
	read("priority", "a whole number", &t.Priority)
	read("depends_on", "a list of ids", &t.DependsOn)
	read("stands_for", "an id", &t.StandsFor)
	if v, ok := o.members["stubbed"]; ok {
		_ = json.Unmarshal(f.src[v.begin:v.end], &t.Stubbed) // of another kind, it is somebody's own key
	}
	if fault != nil {
		return t, fault
	}
	if v, ok := o.members["description"]; ok && t.Title == "" {
		_ = json.Unmarshal(f.src[v.begin:v.end], &description) // of whatever kind: it is only shown
		t.Title, _, _ = strings.Cut(description, "\n")
	}
	if v, ok := o.members["blockers"]; ok && json.Unmarshal(f.src[v.begin:v.end], &t.Blockers) != nil {
		t.Blockers = nil // of another kind, it is somebody's own key
	}
	if t.unnamed = f.bare && t.ID == ""; t.unnamed {
	} else if bad := badID(t.ID); bad != "" {
		return t, f.fault(o.begin, "task %d of the list: id %s %s", len(f.Tasks)+1, strconv.Quote(t.ID), bad)
	}
	if v := o.members["status"]; !slices.Contains([]string{"todo", "doing", "done", "blocked"}, t.Status) {
		return t, f.fault(v.begin, "task %s: status %s: want todo, doing, done or blocked", t.ID, short([]byte(t.Status)))
	}
	return t, nil
}

// otherCase returns the fault of a key that differs from a known one in case only: with the known one
// beside it, which sluice writes, the file would be ambiguous.
func (f *File) otherCase(o object) (fault *Fault) {
	first, known := len(f.src), knownKeys()
	for key, v := range o.members {
		i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(key, k) })
		if i >= 0 && key != known[i] && v.begin < first {
			first = v.begin
			fault = f.fault(v.begin, "task %d of the list: key %s: write %s", len(f.Tasks)+1, short([]byte(key)), known[i])
		}
	}
	return fault
}

func knownKeys() []string {
	return []string{"id", "title", "description", "status", "priority", "depends_on", "stands_for", "summary", "blockers",
		"stubbed", "created_at", "updated_at"}
}

// Slips tells of keys that are likely a known one misspelt. They are kept as any other, and nothing
// is read from them. near gives the known name that is meant, "" where there is none.
func (f *File) Slips(near func(name string, known []string) string) (out []Fault) {
	known := knownKeys()
	for i, o := range f.places {
		for _, key := range slices.Sorted(maps.Keys(o.members)) {
			if slices.Contains(known, key) {
				continue
			}
			if meant := near(key, known); meant != "" {
				out = append(out, *f.fault(o.members[key].begin, "task %s: key %s is kept but not read: did you mean %s?",
					f.Tasks[i].ID, short([]byte(key)), meant))
			}
		}
	}
	return out
}

// badID returns what is wrong with an id, which becomes a part of paths.
func badID(id string) string {
	letter := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
	switch {
	case id == "":
		return "is missing"
	case len(id) > 64:
		return "is longer than 64 characters"
	case !letter(id[0]) || strings.Contains(id, ".."):
		return "is not an id: letters, digits and . _ - only, a letter or digit first"
	}
	for i := range len(id) {
		if !letter(id[i]) && !strings.ContainsRune("._-", rune(id[i])) {
			return "is not an id: letters, digits and . _ - only, a letter or digit first"
		}
	}
	return ""
}

// whole looks at the tasks together: doubled ids, dependencies that are not there, cycles.
func (f *File) whole() *Fault {
	by := make(map[string]int, len(f.Tasks))
	for i, t := range f.Tasks {
		if first, ok := by[t.ID]; ok {
			return f.fault(f.places[i].begin, "task %s is there twice: the first is on line %d", t.ID,
				f.fault(f.places[first].begin, "").Line)
		}
		by[t.ID] = i
	}
	for i, t := range f.Tasks {
		for _, d := range t.DependsOn {
			if _, ok := by[d]; !ok {
				return f.fault(f.place(i, "depends_on"), "task %s depends on %s, which does not exist", t.ID, short([]byte(d)))
			}
		}
	}
	mark := make([]int, len(f.Tasks)) // 1 = on the way, 2 = seen
	var way []int
	var walk func(i int) *Fault
	walk = func(i int) *Fault {
		mark[i], way = 1, append(way, i)
		for _, d := range f.Tasks[i].DependsOn {
			switch k := by[d]; mark[k] {
			case 0:
				if fault := walk(k); fault != nil {
					return fault
				}
			case 1:
				var ids []string
				for _, x := range append(way[slices.Index(way, k):], k) {
					ids = append(ids, f.Tasks[x].ID)
				}
				return f.fault(f.place(k, "depends_on"), "the tasks depend on one another: %s", strings.Join(ids, " -> "))
			}
		}
		mark[i], way = 2, way[:len(way)-1]
		return nil
	}
	for i := range f.Tasks {
		if mark[i] == 0 {
			if fault := walk(i); fault != nil {
				return fault
			}
		}
	}
	return nil
}

func (f *File) place(i int, key string) int {
	if v, ok := f.places[i].members[key]; ok {
		return v.begin
	}
	return f.places[i].begin
}

// Format formats a task file that was read without a fault: a line for each key, in the file's
// order. nil: formatted, it would be too large for a task file.
func Format(src []byte) []byte {
	if formattedSize(src) > MaxBytes {
		return nil
	}
	var b bytes.Buffer
	if json.Indent(&b, bytes.TrimSpace(src), "", "  ") != nil {
		return src
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// formattedSize returns the size in bytes of valid JSON once formatted, without formatting it: deeply
// nested text grows many times.
func formattedSize(src []byte) int {
	n, depth, last := len("\n"), 0, byte(0)
	line := func() int { return len("\n") + len("  ")*depth }
	s := scanner{src: src}
	for s.space(); s.at < len(src); s.space() {
		c, from := src[s.at], s.at
		s.at++
		switch {
		case c == '"':
			s.at = from
			s.text()
		case c == '{' || c == '[':
			depth++
			n += line()
		case (c == '}' || c == ']') && last+2 == c: // an empty one stays on its line: { and [ come two before } and ]
			n -= line()
			depth--
		case c == '}' || c == ']':
			depth--
			n += line()
		case c == ',':
			n += line()
		case c == ':':
			n++
		}
		n, last = n+s.at-from, c
	}
	return n
}

func short(b []byte) string {
	if len(b) > 80 {
		return string(b[:80]) + "…"
	}
	return string(b)
}

// plainText reads a quoted text. It need not be one.
func plainText(raw []byte) (string, bool) {
	if len(raw) >= 2 && raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true // it was held to be JSON, and has nothing to undo
	}
	var out string
	err := json.Unmarshal(raw, &out)
	return out, err == nil && raw[0] == '"'
}
