package tasks

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A file may be the list alone: then an entry may be a text, and ids may be left out.

// entry reads where the next entry of the list stands: an object or, in a file that is the list alone, a text.
func (f *File) entry(s *scanner) (object, *Fault) {
	begin, n := s.at, len(f.Tasks)+1
	switch {
	case s.src[begin] == '{':
		return s.object(), nil
	case f.bare && s.src[begin] == '"':
		s.text()
		return object{begin: begin, end: s.at - 1}, nil
	case f.bare:
		s.value()
		return object{}, f.fault(begin, "task %d of the list is neither an object nor a text: %s", n,
			short(s.src[begin:s.at]))
	}
	return object{}, f.fault(begin, "task %d of the list is not an object", n)
}

// isText reports whether the entry is a text.
func (f *File) isText(o object) bool { return f.src[o.begin] == '"' }

// name gives ids to those without one: T and their place in the list, past those that are taken.
func (f *File) name() {
	taken := map[string]bool{}
	for _, t := range f.Tasks {
		taken[t.ID] = true
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		if !t.unnamed {
			continue
		}
		for n := i + 1; t.ID == "" || taken[t.ID]; n++ {
			t.ID = "T" + strconv.Itoa(n)
		}
		taken[t.ID] = true
		t.Body = f.named(i)
	}
}

// named is a task without an id, as an object with one.
func (f *File) named(i int) json.RawMessage {
	o, id := f.places[i], `{"id": `+quote(f.Tasks[i].ID)
	if f.isText(o) {
		return json.RawMessage(id + `, "title": ` + string(f.src[o.begin:o.end+1]) + "}")
	}
	rest := string(f.src[o.begin+1 : o.end+1])
	if v, ok := o.members["id"]; ok { // an empty one
		return json.RawMessage(string(f.src[o.begin:v.begin]) + quote(f.Tasks[i].ID) + string(f.src[v.end:o.end+1]))
	}
	if len(o.members) > 0 {
		rest = ", " + strings.TrimLeft(rest, " \n\t\r")
	}
	return json.RawMessage(id + rest)
}
