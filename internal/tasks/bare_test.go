package tasks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice/tools/conform"
)

const bare = `[
  "say hello",
  {"title": "greet", "depends_on": ["T1"]},
  {"id": "T3", "title": "taken"},
  {},
  {"id": "", "title": "empty"}
]
`

// TestBareList: a list alone is a task file; who has no id gets one by its place, which is written with the first status.
func TestBareList(t *testing.T) {
	conform.Rule(t, "13-law bare", "of objects and texts, with and without ids; written back as a list")
	f, fault := Read([]byte(bare))
	if fault != nil {
		t.Fatal(fault)
	}
	var got []string
	for _, x := range f.Tasks {
		got = append(got, fmt.Sprintf("%s %s %s", x.ID, x.Title, x.Body))
	}
	want := []string{`T1 say hello {"id": "T1", "title": "say hello"}`, `T2 greet {"id": "T2", "title": "greet", "depends_on": ["T1"]}`, `T3 taken {"id": "T3", "title": "taken"}`,
		`T4  {"id": "T4"}`, `T5 empty {"id": "T5", "title": "empty"}`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	changes := []Change{{ID: "T1", Status: "doing", Stubbed: true}, {ID: "T2", Status: "todo"}, {ID: "T3", Status: "todo"}, {ID: "T4", Status: "done", Stubbed: true}, {ID: "T5", Status: "todo"},
		{ID: "N", Status: "todo", Body: []byte(`{"id": "N"}`)}}
	out, changed := f.With(changes, now)
	const stamp = `"2026-01-02T03:04:05Z"`
	after := strings.NewReplacer("NOW", stamp).Replace(`[
  {"id": "T1", "title": "say hello", "status": "doing", "created_at": NOW, "updated_at": NOW},
  {"title": "greet", "depends_on": ["T1"], "id": "T2", "updated_at": NOW},
  {"id": "T3", "title": "taken"},
  {"id": "T4", "status": "done", "stubbed": true, "updated_at": NOW},
  {"id": "T5", "title": "empty", "updated_at": NOW},
  {"id": "N", "status": "todo", "created_at": NOW, "updated_at": NOW}
]
`)
	if !changed || string(out) != after {
		t.Errorf("got\n%s\nwant\n%s", out, after)
	}
	again, fault := Read(out)
	if fault != nil {
		t.Fatal(fault)
	}
	for i, id := range []string{"T1", "T2", "T3", "T4", "T5", "N"} {
		if again.Tasks[i].ID != id {
			t.Errorf("task %d is %s, want %s", i, again.Tasks[i].ID, id)
		}
	}
	if _, changed := again.With(changes, now); changed {
		t.Error("what is there is written again")
	}
}

// TestBareIDs: an id that is taken is passed over, and those of texts stay what they were when they are written.
func TestBareIDs(t *testing.T) {
	f, fault := Read([]byte(`["a", {"id": "T1", "depends_on": ["T3"]}, "b", "c"]`))
	if fault != nil {
		t.Fatal(fault)
	}
	if got := f.Tasks[0].ID + f.Tasks[1].ID + f.Tasks[2].ID + f.Tasks[3].ID; got != "T2T1T3T4" {
		t.Error(got)
	}
}

// TestBareFaults: what is wrong with a bare list is told with its line.
func TestBareFaults(t *testing.T) {
	for src, want := range map[string]string{
		"[\n1]":                                "line 2: task 1 of the list is neither an object nor a text: 1",
		"[\"a\",\n[\"b\"]]":                    `line 2: task 2 of the list is neither an object nor a text: ["b"]`,
		"[\"a\",\n\" \"]":                      "line 2: task 2 of the list is an empty text",
		"[\"a\",\n{\"depends_on\": [\"T9\"]}]": "line 2: task T2 depends on T9, which does not exist",
		"[\"a\",\n{\"id\": \"a b\"}]":          `line 2: task 2 of the list: id "a b" is not an id: letters, digits and . _ - only, a letter or digit first`,
		"[\"a\",\n{\"title\": 4}]":             "line 2: task 2 of the list: title: want a text, found 4",
		"[\"a\"":                               "line 1: not a JSON list: not whole: it ends after 4 bytes in the middle of the JSON",
		"\"a\"":                                "line 1: not a JSON object: want an object, found a text",
		`{"tasks": ["a"]}`:                     "line 1: task 1 of the list is not an object",
		`{"tasks": [{}]}`:                      `line 1: task 1 of the list: id "" is missing`,
	} {
		if _, fault := Read([]byte(src)); fault == nil || fault.Error() != want {
			t.Errorf("%s: %v, want %s", src, fault, want)
		}
	}
	if f, fault := Read([]byte(" []")); fault != nil || len(f.Tasks) != 0 {
		t.Errorf("an empty list: %v", fault)
	}
}
